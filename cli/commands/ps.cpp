// cuslice ps: who holds and is promised how much of which GPU.
#include <cstdio>

#include "cli/commands.h"
#include "cli/dead_stats.h"
#include "cli/exit_codes.h"
#include "cli/holders.h"
#include "cli/launcher_settings.h"
#include "cli/prometheus.h"
#include "cli/table.h"
#include "cli/users.h"
#include "config/printable.h"
#include "policy/ledger/refusal.h"
#include "policy/ledger/users.h"

namespace cuslice::cli {
namespace {

std::string size_text(std::uint64_t bytes) { return bytes == ledger::kNoLimitBytes ? "-" : format_mib(bytes); }

std::string as_table(const std::vector<Holder>& holding) {
    std::vector<std::vector<std::string>> cells = {{"GPU", "PID", "USER", "SINCE", "COMMAND", "KIND", "NAME", "USED",
                                                    "TOGETHER", "PEAK", "RESERVED", "LIMIT", "IDLE"}};
    for (const Holder& row : holding) {
        // The start of a UUID is enough to name a GPU by.
        cells.push_back({row.gpu.substr(0, 12), std::to_string(row.pid), user_name(row.user),
                         age_text(ledger::seconds_since(row.since)), row.command, row.kind, row.name,
                         size_text(row.used), size_text(row.together), size_text(row.peak), size_text(row.reserved),
                         size_text(row.limit), age_text(row.idle_seconds)});
    }
    return format_table(cells, 2);
}

std::string as_table(const std::vector<WaitingProcess>& rows) {
    std::vector<std::vector<std::string>> cells = {
        {"GPU", "QUEUE", "USER", "PID", "COMMAND", "WANTS", "SINCE", "PASSED"}};
    for (const WaitingProcess& row : rows)
        cells.push_back({row.gpu.substr(0, 12), std::to_string(row.position), user_name(row.waiter.user),
                         std::to_string(row.waiter.pid), row.waiter.command, size_text(row.waiter.bytes),
                         age_text(ledger::seconds_since(row.waiter.since)), std::to_string(row.past)});
    return format_table(cells, 2);
}

std::string as_json(const Holders& found) {
    Json list = Json::array(), waiting = Json::array();
    for (const WaitingProcess& row : found.waiting) waiting.push_back(json_of(row));
    for (const Holder& row : found.holding) list.push_back(json_of(row));
    return json_text({{"version", 1}, {"processes", list}, {"waiting", waiting}});
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
        line += " held at most " + format_mib(peak.peak);
        if (peak.limit != ledger::kNoLimitBytes) line += " of " + format_mib(peak.limit);
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
    const bool for_people = !invocation.arguments.json && !invocation.arguments.prometheus;
    if (invocation.arguments.json)
        std::fputs(as_json(found).c_str(), stdout);
    else if (invocation.arguments.prometheus)
        std::fputs(prometheus_text(found).c_str(), stdout);
    else if (!found.holding.empty())
        std::fputs(as_table(found.holding).c_str(), stdout);
    else if (!found.failures.empty())
        std::puts("Who holds what here could not be seen.");
    else
        std::puts("No job or group holds or reserves anything here.");
    if (for_people && !found.waiting.empty()) std::fputs(("\n" + as_table(found.waiting)).c_str(), stdout);
    return found.own_failed ? kNoGpu : 0;
}

}  // namespace cuslice::cli
