// cuslice ps: who holds and is promised how much of which GPU.
#include <cstdio>

#include "cli/commands.h"
#include "cli/ledger/dead_stats.h"
#include "cli/ledger/holders.h"
#include "cli/ledger/prometheus.h"
#include "cli/ledger/users.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/command_line.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "config/printable.h"
#include "config/resolve.h"
#include "config/uuid/fake.h"
#include "policy/ledger/refusal.h"
#include "policy/ledger/users.h"

namespace cuslice::cli {
namespace {

std::string size_text(std::uint64_t bytes) { return bytes == ledger::kNoLimitBytes ? "-" : format_memory(bytes); }

// The start of a UUID is enough to name a GPU by.
Cell gpu_cell(const std::string& uuid) {
    const std::string start = uuid.substr(0, 12);
    return is_fake_uuid(uuid) ? Cell(start + " fake", Tone::faint) : Cell(start);
}

std::string command_of(const std::vector<std::string>& words, const std::string& name, bool wide) {
    return command_text(words, name, wide ? CommandDetail::whole : CommandDetail::line);
}

enum class Align { left, right, flexible };

/// A column of a table: its heading, and its cell of a row.
template <typename Row>
struct Column {
    std::string_view heading;
    Align align;
    Cell (*cell)(const Row& row, bool wide);
};

Tone tone_of(const Holder& row) {
    const bool nearly_full = static_cast<double>(row.together) >= 0.9 * static_cast<double>(row.limit);
    return nearly_full ? Tone::nearly_full : Tone::plain;
}

Cell age_cell(std::uint64_t since) { return age_text(ledger::seconds_since(since)); }

constexpr Column<Holder> kHolderColumns[] = {
    {"GPU", Align::left, [](const Holder& row, bool) { return gpu_cell(row.gpu); }},
    {"PID", Align::right, [](const Holder& row, bool) { return Cell(std::to_string(row.pid)); }},
    {"USER", Align::left, [](const Holder& row, bool) { return Cell(user_name(row.user)); }},
    {"USED", Align::right, [](const Holder& row, bool) { return Cell(size_text(row.used), tone_of(row)); }},
    {"LIMIT", Align::right, [](const Holder& row, bool) { return Cell(size_text(row.limit)); }},
    {"COMMAND", Align::flexible,
     [](const Holder& row, bool wide) { return Cell(command_of(row.command_line, row.command, wide)); }},
    {"KIND", Align::left, [](const Holder& row, bool) { return Cell(row.kind); }},
    {"NAME", Align::left, [](const Holder& row, bool) { return Cell(row.name); }},
    {"JOB USED", Align::right, [](const Holder& row, bool) { return Cell(size_text(row.together), tone_of(row)); }},
    {"JOB PEAK", Align::right, [](const Holder& row, bool) { return Cell(size_text(row.peak)); }},
    {"RESERVED", Align::right, [](const Holder& row, bool) { return Cell(size_text(row.reserved)); }},
    {"SINCE", Align::right, [](const Holder& row, bool) { return age_cell(row.since); }},
    {"IDLE", Align::right, [](const Holder& row, bool) { return Cell(age_text(row.idle_seconds)); }},
};

constexpr Column<WaitingProcess> kWaitingColumns[] = {
    {"GPU", Align::left, [](const WaitingProcess& row, bool) { return gpu_cell(row.gpu); }},
    {"QUEUE", Align::right, [](const WaitingProcess& row, bool) { return Cell(std::to_string(row.position)); }},
    {"PID", Align::right, [](const WaitingProcess& row, bool) { return Cell(std::to_string(row.waiter.pid)); }},
    {"USER", Align::left, [](const WaitingProcess& row, bool) { return Cell(user_name(row.waiter.user)); }},
    {"WANTS", Align::right, [](const WaitingProcess& row, bool) { return Cell(size_text(row.waiter.bytes)); }},
    {"COMMAND", Align::flexible,
     [](const WaitingProcess& row, bool wide) { return Cell(command_of(row.command_line, row.waiter.command, wide)); }},
    {"SINCE", Align::right, [](const WaitingProcess& row, bool) { return age_cell(row.waiter.since); }},
    {"OVERTAKEN", Align::right, [](const WaitingProcess& row, bool) { return Cell(std::to_string(row.past)); }},
};

template <typename Row, std::size_t Count>
std::string as_table(const Column<Row> (&columns)[Count], const std::vector<Row>& rows, bool wide) {
    TableStyle style = style_of_output(2, wide);
    std::vector<std::vector<Cell>> cells(1);
    for (std::size_t i = 0; i < Count; ++i) {
        cells[0].emplace_back(std::string(columns[i].heading));
        if (columns[i].align == Align::flexible) style.flexible = i;
        if (columns[i].align == Align::right) style.right.push_back(i);
    }
    for (const Row& row : rows) {
        std::vector<Cell>& line = cells.emplace_back();
        for (const Column<Row>& column : columns) line.push_back(column.cell(row, wide));
    }
    return format_table(cells, style);
}

std::string as_json(const Holders& found) {
    Json list = Json::array(), waiting = Json::array();
    for (const WaitingProcess& row : found.waiting) waiting.push_back(json_of(row));
    for (const Holder& row : found.holding) list.push_back(json_of(row));
    return json_text({{"version", 1}, {"processes", list}, {"waiting", waiting}});
}

// In one unit whatever the size: who reads logs looks for it.
std::string whole_mib(std::uint64_t bytes) {
    constexpr std::uint64_t kMiB = 1 << 20;
    return std::to_string(bytes / kMiB + (bytes % kMiB >= kMiB / 2 ? 1 : 0)) + " MiB";
}

// "slurm-42 held at most 3745 MiB of 3777 MiB on GPU-3edf58cd": what a scheduler puts into its log as it is.
int show_peaks(const std::string& job, const std::string& folder, bool json) {
    std::vector<std::string> failures;
    const std::vector<JobPeak> peaks = read_peaks(folder, job, failures);
    for (const std::string& text : failures) warn("ps: " + text);
    if (json) {
        Json list = Json::array();
        for (const JobPeak& peak : peaks) list.push_back(json_of(peak));
        std::fputs(json_text({{"version", 1}, {"job", job}, {"peaks", list}}).c_str(), stdout);
    }
    for (const JobPeak& peak : peaks) {
        std::string printable, line(append_printable(printable, job));
        line += " held at most " + whole_mib(peak.peak);
        if (peak.limit != ledger::kNoLimitBytes) line += " of " + whole_mib(peak.limit);
        append_printable(line.append(" on "), peak.gpu.substr(0, 12));
        if (peak.user != ledger::this_user(folder.c_str())) line += " (user " + user_name(peak.user) + ")";
        if (!json) std::puts(line.c_str());
    }
    if (!peaks.empty()) return 0;
    return fail("ps: no ledger here remembers a job " + job, kNoGpu);
}

}  // namespace

int list_holders(const Invocation& invocation) {
    ConfigError error;
    Settings settings;
    if (!load_launcher(settings, invocation, error)) return fail(error, kConfig);
    const std::string folder = sharing_folder(settings, invocation.environment);
    remove_dead_stats(folder);
    if (!invocation.arguments.job.empty())
        return show_peaks(invocation.arguments.job, folder, invocation.arguments.json);
    const Holders found = read_holders(folder);
    for (const std::string& text : found.failures) warn("ps: " + text);
    const bool wide = invocation.arguments.wide;
    const bool for_people = !invocation.arguments.json && !invocation.arguments.prometheus;
    if (invocation.arguments.json)
        std::fputs(as_json(found).c_str(), stdout);
    else if (invocation.arguments.prometheus)
        std::fputs(prometheus_text(find(settings, Key::fake) != nullptr ? found : without_fakes(found)).c_str(),
                   stdout);
    else if (!found.holding.empty())
        std::fputs(as_table(kHolderColumns, found.holding, wide).c_str(), stdout);
    else if (!found.failures.empty())
        std::puts("Who holds what here could not be seen.");
    else
        std::puts("No job or group holds or reserves anything here.");
    if (for_people && !found.waiting.empty())
        std::fputs(("\n" + as_table(kWaitingColumns, found.waiting, wide)).c_str(), stdout);
    return found.own_failed ? kNoGpu : 0;
}

}  // namespace cuslice::cli
