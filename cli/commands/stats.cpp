// SPDX-License-Identifier: Apache-2.0
// cuslice stats: what a running process's caches hold and have done.
#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/ledger/cells.h"
#include "cli/ledger/dead_stats.h"
#include "cli/ledger/job_times.h"
#include "cli/ledger/read_stats.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/command_line.h"
#include "cli/text/exit_codes.h"
#include "cli/text/json.h"
#include "cli/text/report.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "config/printable.h"
#include "config/resolve.h"
#include "config/size.h"

namespace cuslice::cli {
namespace {

std::string text_of(uint64_t bytes) { return std::string(format_size(bytes)); }

std::string ago(uint64_t milliseconds) {
    return std::to_string(milliseconds / 1000) + "." + std::to_string(milliseconds % 1000 / 100) + " s ago";
}

// Shares of the jobs that the process is in.
std::vector<JobTime> times_of(const std::string& folder, int pid) {
    std::vector<JobTime> times = read_job_times(folder, {});
    std::erase_if(times, [&](const JobTime& job) { return std::ranges::find(job.pids, pid) == job.pids.end(); });
    return times;
}

// Empty where it has no share of any GPU's time.
std::string table_of(const std::vector<JobTime>& times) {
    std::vector<std::vector<Cell>> rows = {{"GPU", "SHARE", "CAP", "HAD", "WAITED"}};
    for (const JobTime& job : times)
        rows.push_back(
            {gpu_cell(job.gpu), share_text(job.share), cap_text(job.cap), time_text(job.had), time_text(job.waited)});
    TableStyle style = style_of_output();
    style.right = {1, 2, 3, 4};
    return times.empty() ? "" : "\n" + format_table(rows, style);
}

std::string as_table(int pid, const ProcessStats& process) {
    std::vector<std::vector<Cell>> tallies = {{"GPU", "BYTES", "CURRENT", "PEAK", "ALLOCATED", "FREED"}};
    std::vector<std::vector<Cell>> counts = {{"GPU", "MODE", "CONTEXTS", "ALLOCATIONS", "FREES", "SEGMENTS", "RETRIES",
                                              "OOMS", "SYNCS", "LARGEST FREE", "OWN MEMORY", "WRITTEN"}};
    for (const GpuStats& gpu : process.gpus) {
        const Statistics& s = gpu.statistics;
        const std::string start = gpu.uuid.substr(0, 12);  // enough to name a GPU by
        for (const NamedTally& row : kTallies) {
            const Tally& tally = s.*row.tally;
            tallies.push_back({start, row.name, text_of(tally.current), text_of(tally.peak), text_of(tally.allocated),
                               text_of(tally.freed)});
        }
        counts.push_back({start, mode_of(gpu), std::to_string(gpu.contexts), std::to_string(s.allocations),
                          std::to_string(s.frees), std::to_string(s.segments), std::to_string(s.retries),
                          std::to_string(s.ooms), std::to_string(s.syncs), text_of(s.largest_free),
                          text_of(s.own_memory), ago(gpu.milliseconds)});
    }
    std::string command;
    append_printable(command, command_text(process.command_line, process.command, CommandDetail::line));
    return "process " + std::to_string(pid) + " (" + command + ")\n\n" + format_table(tallies, style_of_output()) +
           "\n" + format_table(counts, style_of_output()) + "\n" +
           wrap(
               "Changes show when they are 16 MiB or a 64th of what is reserved, and what threads keep for themselves "
               "later.",
               0);
}

std::string as_json(int pid, const ProcessStats& process, const std::vector<JobTime>& times) {
    Json gpus = Json::array(), list = Json::array();
    for (const JobTime& job : times)
        list.push_back(json_of(job));
    for (const GpuStats& gpu : process.gpus)
        gpus.push_back(json_of(gpu));
    return json_text({{"version", 1},
                      {"pid", pid},
                      {"command", process.command},
                      {"command_line", json_of_words(process.command_line)},
                      {"gpus", gpus},
                      {"times", list}});
}

}  // namespace

int show_statistics(const Invocation& invocation) {
    ConfigError error;
    Settings settings;
    if (!load_launcher(settings, invocation, error))
        return fail(error, kConfig);
    const std::string folder = sharing_folder(settings, invocation.environment);
    remove_dead_stats(folder);
    const int pid = invocation.arguments.pid;
    const ProcessStats process = read_stats(folder, pid);
    if (!process.failure.empty())
        return fail(process.failure, kNoGpu);
    const std::vector<JobTime> times = times_of(folder, pid);
    const bool json = invocation.arguments.json;
    std::fputs((json ? as_json(pid, process, times) : as_table(pid, process) + table_of(times)).c_str(), stdout);
    return 0;
}

}  // namespace cuslice::cli
