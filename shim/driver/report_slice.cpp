// SPDX-License-Identifier: Apache-2.0
// A slice from its begin to its end: what is allowed, who shares it, what was used of it.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "config/container_group.h"
#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/size.h"
#include "shim/driver/holdings.h"
#include "shim/driver/report.h"
#include "shim/driver/report_gpu.h"
#include "shim/log.h"
#include "shim/process/process.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

constinit OncePerGpu logged, placed, unmeasured, unlimited, too_large, grouped, unreserved;
constinit std::atomic<pid_t> used_in{0};  // the process that has contexts: not a forked child

// Where `cuslice run` has named the group, it has said the line for the whole job.
bool names_group_here() {
    const Entry* const named = find(process().settings(), Key::group);
    return named && named->rank.level == 0;
}

// Once in a process and for a GPU.
void say_group(const VirtualGpu& gpu) {
    const ledger::GroupTerms* const found = gpu.siblings().found_group();
    if (!found || !names_group_here() || !grouped.first(*gpu.physical().parts().front()))
        return;
    ledger::GroupTerms terms = *found;
    if (shares_container(process().settings()))
        terms.similar[0] = '\0';  // nobody has chosen these names
    LogLine place;
    const auto line = ledger::describe_group(gpu_state().sharing.group, append_gpu(place, gpu), terms,
                                             gpu.physical().whole_slice().group_limit);
    if (!line.empty())
        log_line(LogLevel::warn, LogLine(line));
}

void say_nothing_reserved(const VirtualGpu& gpu) {
    const bool has_limit = gpu.slice().job_limit != ledger::kNoLimitBytes;
    if (gpu_state().sharing.begins_job && !has_limit)
        say_once(unreserved, gpu, LogLevel::warn,
                 ": admission: this program has no limit of its own here, so nothing is reserved; set CUSLICE_LIMIT or "
                 "CUSLICE_FRACTION");
}

// At which the program's end is worth a line.
LogLevel summary_level() { return is_on(process().settings(), Key::summary) ? LogLevel::warn : LogLevel::info; }

// Names the remedy where the ledger can't be had.
void append_advice(LogLine& line, const ledger::LedgerError& failure, bool rule) {
    const bool has_remedy = failure.no_place || failure.stranger;
    if (failure.no_place)
        line.append(". Mount the ledger folder into the container, make room for it");
    if (failure.stranger)
        line.append(". Have the administrator remove what is in the way");
    if (has_remedy)
        line.append(rule ? ", or have the administrator set dir in the system's file to another folder"
                         : ", or set CUSLICE_DIR to another folder for all processes that share the limit");
}

// A context always takes memory. Where the GPU's is the host's there may be nothing that tells how much.
void say_unmeasured(const VirtualGpu& gpu) {
    int shared_with_host = 0;
    CUSLICE_REAL(cuDeviceGetAttribute)(&shared_with_host, CU_DEVICE_ATTRIBUTE_INTEGRATED, gpu.ordinal());
    if (shared_with_host && gpu.driver_footprint() == 0)
        say_once(unmeasured, gpu, LogLevel::warn,
                 ": NVML does not report this process's memory, and the GPU uses host memory, so contexts and modules "
                 "are not counted: leave room for them with headroom, which is ",
                 format_size(gpu.headroom()));
}

bool is_seen(const GpuSelector& selector) {
    const std::span<VirtualGpu> gpus = process().gpus();
    return std::any_of(gpus.begin(), gpus.end(),
                       [&](const VirtualGpu& gpu) { return selector.matches(gpu.physical().identity()); });
}

// By a variable that is set here and now, and is not what a launcher handed over.
bool is_said_here(const Entry& entry) {
    if (entry.rank.source == Source::other_tools)
        return getenv(kHandOver.data()) == nullptr;
    return entry.rank.source == Source::environment && entry.rank.level == 0;
}

// A variable set here and now has a limit for a GPU that this program doesn't see, and this one has none: perhaps
// CUDA's number was meant, which counts the visible GPUs. cuslice run looks at this before it starts a program.
void say_unlimited(const VirtualGpu& gpu) {
    for (const Entry& entry : process().settings().entries()) {
        if (is_amount(entry.key) && is_said_here(entry) && !is_seen(entry.selector))
            say_once(unlimited, gpu, LogLevel::warn, ": no limit; ", entry.origin, " sets one for '",
                     entry.selector.text, "', a GPU that this program doesn't see");
    }
}

// A variable is often written once for machines of several sizes; one that names a GPU means this one.
void say_too_large(const VirtualGpu& gpu) {
    const uint64_t total = gpu.physical().total();
    const Entry* const limit = find(process().settings(), Key::limit, gpu.physical().identity());
    if (!limit || limit->key != Key::limit || !is_said_here(*limit))
        return;
    const bool is_more = total != 0 && limit->number > total;
    if (!is_more || gpu.physical().is_split())
        return;
    const LogLevel level = limit->selector.is_general() ? LogLevel::info : LogLevel::warn;
    say_once(too_large, gpu, level, ": ", limit->origin, " sets a limit of ", format_size(limit->number),
             ", and it has only ", format_size(total), ", so the program may use all of it");
}

constinit std::atomic<bool> advised{false};

// Once in a process: the environment is too late for what a framework has read before its first CUDA call.
void say_missed_variables() {
    const std::string_view missed = process().missed_variables();
    if (missed.empty() || advised.exchange(true, std::memory_order_relaxed))
        return;
    LogLine line("JAX reads its variables before the first CUDA call. cuslice run sets ");
    line.append(missed, "; under LD_PRELOAD alone, set it in the environment if the program uses JAX");
    log_line(LogLevel::info, line);
}

// Nobody has joined yet where no hook has seen the context begin.
void join_unseen(VirtualGpu& gpu) {
    if (!gpu.slice().in_group || gpu.siblings().found_group())
        return;
    const Scratch<Refusal> refusal;
    if (refusal && gpu.join(&*refusal))
        say_group(gpu);
}

// Nothing is to be had, as what others hold of the limit isn't known.
void append_unreachable(LogLine& line, const VirtualGpu& gpu, const ledger::LedgerError& failure) {
    const bool rule = gpu.slice().rule_limit != ledger::kNoLimitBytes;
    if (rule)
        line.append("rule ", gpu_state().sharing.rule_name(), ": ");
    line.append(gpu_state().sharing.begins_job
                    ? "the limit can't be reserved, so every allocation fails: "
                    : "the limit can't be shared with other processes, so every allocation fails: ");
    append_advice(line.append(failure.text), failure, rule);
}

}  // namespace

CUresult answer_place(const VirtualGpu& gpu, const Refusal& refusal) {
    if (!refusal.stands()) {
        say_group(gpu);
        say_nothing_reserved(gpu);
        if (refusal.rebuilt)
            say_once(placed, gpu, LogLevel::warn, ": the ledger in ", gpu_state().sharing.folder,
                     " was damaged or of another version and has been recreated");
        return CUDA_SUCCESS;
    }
    LogLine line;
    append_gpu(line, gpu).append(": ");
    if (refusal.how == ledger::Joined::lost)
        line.append(refusal.failure.text);
    else if (refusal.how == ledger::Joined::unreachable)
        append_unreachable(line, gpu, refusal.failure);
    else
        line.append(ledger::describe_refusal(refusal));
    log_line(LogLevel::warn, line);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void log_slice(VirtualGpu& gpu, CUcontext context) {
    used_in.store(getpid(), std::memory_order_relaxed);
    if (wants(summary_level()))
        watch_holdings();
    if (gpu.bound())
        say_unmeasured(gpu);
    else
        say_unlimited(gpu);
    say_too_large(gpu);
    join_unseen(gpu);
    if (!wants(LogLevel::info) || !logged.first(gpu))
        return;
    LogLine line;
    append_identity(line, gpu).append(", total ", format_size(gpu.physical().total()));
    size_t free = 0, total = 0;
    PushedContext during;
    if (during.push(context) && CUSLICE_REAL(cuMemGetInfo_v2)(&free, &total) == CUDA_SUCCESS)
        line.append(", free ", format_size(free));
    during.pop();
    if (gpu.bound())
        line.append(", limit ", format_size(gpu.limit()), " from ", gpu.slice().origin);
    else
        line.append(", no limit");
    log_line(LogLevel::info, line);
    say_missed_variables();
}

void report_times() {
    const LogLevel level = summary_level();
    if (!wants(level))
        return;
    for (const VirtualGpu& gpu : process().gpus())
        report_time(level, gpu);
}

void report_use() {
    const LogLevel level = summary_level();
    if (!wants(level) || used_in.load(std::memory_order_relaxed) != getpid())
        return;
    note_holdings();
    for (const VirtualGpu& gpu : process().gpus()) {
        const uint64_t limit = gpu.limit(), most = std::min(gpu.polling().most_used(), limit);
        if (!gpu.bound() || !gpu.measured() || most == 0)
            continue;
        LogLine line;
        append_gpu(line, gpu).append(": this process used at most ", format_size(most), " of the ", format_size(limit),
                                     " limit");
        if (most < limit)
            line.append("; at least ", format_size(limit - most), " were never asked for");
        append_most_held(line, gpu);
        if (const uint64_t all = gpu.siblings().sharing().budget().job_peak(); all > most)
            line.append("; all processes of the job held at most ", format_size(all), " at once");
        append_refusals(line, gpu);
        log_line(level, line);
    }
}

}  // namespace cuslice
