// SPDX-License-Identifier: Apache-2.0
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

/// A column of a table: its heading, and its cell of a row.
template <typename Row>
struct Column {
    std::string_view heading;
    Align align;
    Cell (*cell)(const Row& row, Form form);
};

const std::vector<Column<WaitingProcess>> kWaitingColumns = {
    {"GPU", Align::left, [](const WaitingProcess& row, Form) { return gpu_cell(row.gpu); }},
    {"QUEUE", Align::right, [](const WaitingProcess& row, Form) { return Cell(std::to_string(row.position)); }},
    {"PID", Align::right, [](const WaitingProcess& row, Form) { return Cell(std::to_string(row.waiter.pid)); }},
    {"USER", Align::left, [](const WaitingProcess& row, Form) { return Cell(user_name(row.waiter.user)); }},
    {"WANTS", Align::right, [](const WaitingProcess& row, Form form) { return size_cell(row.waiter.bytes, form); }},
    {"COMMAND", Align::flexible,
     [](const WaitingProcess& row, Form form) { return command_cell(row.command_line, row.waiter.command, form); }},
    {"SINCE", Align::right, [](const WaitingProcess& row, Form) { return age_cell(row.waiter.since); }},
    {"OVERTAKEN", Align::right, [](const WaitingProcess& row, Form) { return Cell(std::to_string(row.past)); }},
};

const std::vector<Column<JobTime>> kTimeColumns = {
    {"GPU", Align::left, [](const JobTime& row, Form) { return gpu_cell(row.gpu); }},
    {"PID", Align::right, [](const JobTime& row, Form) { return Cell(std::to_string(row.pids.front())); }},
    {"SHARE", Align::right, [](const JobTime& row, Form) { return Cell(share_text(row.share)); }},
    {"CAP", Align::right, [](const JobTime& row, Form) { return Cell(cap_text(row.cap)); }},
    {"HAD", Align::right, [](const JobTime& row, Form) { return Cell(time_text(row.had)); }},
    {"WAITED", Align::right, [](const JobTime& row, Form) { return Cell(time_text(row.waited)); }},
    {"NOW", Align::left, [](const JobTime& row, Form) { return Cell(row.state); }},
    {"COMMAND", Align::flexible,
     [](const JobTime& row, Form form) { return command_cell(row.command_line, "", form); }},
    {"NAME", Align::left, [](const JobTime& row, Form) { return Cell(row.name); }},
};

std::vector<Column<Holder>> columns_of_holders() {
    std::vector<Column<Holder>> columns;
    for (const HolderColumn* column : ps_columns())
        columns.push_back({column->heading, column->kind.align, column->kind.cell});
    return columns;
}

template <typename Row>
std::string as_table(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows, Form form) {
    TableStyle style = style_of_output(2, form == Form::whole);
    std::vector<std::vector<Cell>> cells(1);
    for (size_t i = 0; i < columns.size(); ++i) {
        cells[0].emplace_back(std::string(columns[i].heading));
        if (columns[i].align == Align::flexible)
            style.flexible = i;
        if (columns[i].align == Align::right)
            style.right.push_back(i);
    }
    for (const Row& row : rows) {
        std::vector<Cell>& line = cells.emplace_back();
        for (const Column<Row>& column : columns)
            line.push_back(column.cell(row, form));
    }
    return format_table(cells, style);
}

std::string as_json(const Holders& found) {
    Json list = Json::array(), waiting = Json::array(), times = Json::array();
    for (const WaitingProcess& row : found.waiting)
        waiting.push_back(json_of(row));
    for (const Holder& row : found.holding)
        list.push_back(json_of(row));
    for (const JobTime& row : found.times)
        times.push_back(json_of(row));
    return json_text({{"version", 1}, {"processes", list}, {"waiting", waiting}, {"times", times}});
}

// In one unit whatever the size: who reads logs looks for it.
std::string whole_mib(uint64_t bytes) {
    constexpr uint64_t kMiB = 1 << 20;
    return std::to_string(bytes / kMiB + (bytes % kMiB >= kMiB / 2 ? 1 : 0)) + " MiB";
}

// "slurm-42 held at most 3745 MiB of 3777 MiB on GPU-3edf58cd": what a scheduler puts into its log as it is.
int show_peaks(const std::string& job, const std::string& folder, bool json) {
    std::vector<std::string> failures;
    const std::vector<JobPeak> peaks = read_peaks(folder, job, failures);
    for (const std::string& text : failures)
        warn("ps: " + text);
    if (json) {
        Json list = Json::array();
        for (const JobPeak& peak : peaks)
            list.push_back(json_of(peak));
        std::fputs(json_text({{"version", 1}, {"job", job}, {"peaks", list}}).c_str(), stdout);
    }
    for (const JobPeak& peak : peaks) {
        std::string printable, line(append_printable(printable, job));
        line += " held at most " + whole_mib(peak.peak);
        if (peak.limit != ledger::kNoLimitBytes)
            line += " of " + whole_mib(peak.limit);
        append_printable(line.append(" on "), peak.gpu.substr(0, 12));
        if (peak.user != ledger::this_user(folder.c_str()))
            line += " (user " + user_name(peak.user) + ")";
        if (!json)
            std::puts(line.c_str());
    }
    if (!peaks.empty())
        return 0;
    return fail("ps: no ledger here remembers a job " + job, kNoGpu);
}

}  // namespace

int list_holders(const Invocation& invocation) {
    ConfigError error;
    Settings settings;
    if (!load_launcher(settings, invocation, error))
        return fail(error, kConfig);
    const std::string folder = sharing_folder(settings, invocation.environment);
    remove_dead_stats(folder);
    if (!invocation.arguments.job.empty())
        return show_peaks(invocation.arguments.job, folder, invocation.arguments.json);
    const Holders found = read_holders(folder);
    for (const std::string& text : found.failures)
        warn("ps: " + text);
    const Form form = invocation.arguments.wide ? Form::whole : Form::line;
    const bool for_people = !invocation.arguments.json && !invocation.arguments.prometheus;
    if (invocation.arguments.json)
        std::fputs(as_json(found).c_str(), stdout);
    else if (invocation.arguments.prometheus)
        std::fputs(prometheus_text(find(settings, Key::fake) != nullptr ? found : without_fakes(found)).c_str(),
                   stdout);
    else if (!found.holding.empty())
        std::fputs(as_table(columns_of_holders(), found.holding, form).c_str(), stdout);
    else if (!found.failures.empty())
        std::puts("Who holds what here could not be seen.");
    else
        std::puts("No job or group holds or reserves anything here.");
    if (for_people && !found.waiting.empty())
        std::fputs(("\n" + as_table(kWaitingColumns, found.waiting, form)).c_str(), stdout);
    if (for_people && !found.times.empty())
        std::fputs(("\n" + as_table(kTimeColumns, found.times, form)).c_str(), stdout);
    return found.own_failed ? kNoGpu : 0;
}

}  // namespace cuslice::cli
