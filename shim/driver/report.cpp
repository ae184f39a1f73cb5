// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "config/container_group.h"
#include "config/handover.h"
#include "config/load.h"
#include "config/printable.h"
#include "config/resolve.h"
#include "config/size.h"
#include "policy/base/kernel_clock.h"
#include "policy/budget/refusal_notices.h"
#include "shim/driver/dump.h"
#include "shim/driver/holdings.h"
#include "shim/log.h"
#include "shim/process/process.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/selection/host_environment.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

// The first of each for a GPU, however many threads come at once.
class OncePerGpu {
  public:
    bool first(const VirtualGpu& gpu) { return !said_[gpu.ordinal()].exchange(true, std::memory_order_relaxed); }

  private:
    std::atomic<bool> said_[Process::kMaxGpus]{};
};
constinit OncePerGpu logged, placed, short_of, unmapped, unmeasured, unlimited, too_large, grouped, unreserved;

constinit std::atomic<pid_t> used_in{0};  // the process that has contexts: not a forked child

constinit RefusalNotices refusals[Process::kMaxGpus];
constinit std::atomic<uint64_t> refusal_counts[Process::kMaxGpus];
constinit std::atomic<pid_t> refused_in{0};  // a forked child has its parent's notices

// One more than the index that NVML had; 0: it was not asked, -1: it had none.
constinit std::atomic<int> known_indices[Process::kMaxGpus]{};

// As nvidia-smi counts. The settings may not have needed it so far; a line for a person is worth asking NVML.
int index_of(const VirtualGpu& gpu) {
    const GpuIdentity& identity = gpu.physical().identity();
    if (identity.index >= 0) return identity.index;
    std::atomic<int>& known = known_indices[gpu.ordinal()];
    if (const int index = known.load(std::memory_order_relaxed)) return index > 0 ? index - 1 : -1;
    const DisableCancellation uncancelled;
    NvmlGpu nvml;
    GpuIdentity seen;
    const bool there = process().start_nvml() && nvml.open(identity.uuid) && nvml.identity(&seen);
    known.store(there ? seen.index + 1 : -1, std::memory_order_relaxed);
    return there ? seen.index : -1;
}

// "GPU 0 (NVIDIA H200)", and of a partition, as the program counts, "virtual GPU 2 (partition 3 of 4 of GPU 0, NVIDIA
// H200)".
void append_gpu(LogLine& line, const VirtualGpu& gpu) {
    if (const Split::Device* device = split().device(gpu.ordinal()); device && device->part.split)
        line.append("virtual GPU ", gpu.ordinal(), " (partition ", device->part.part + 1u, " of ", device->part.parts,
                    " of ");
    line.append("GPU ");
    if (const int index = index_of(gpu); index >= 0)
        line.append(index);
    else
        line.append(gpu.physical().identity().uuid);
    line.append(gpu.physical().is_split() ? ", " : " (", gpu.name(), ')');
}

LogLevel level_of(Notice notice) {
    switch (notice) {
        case Notice::line:
            return LogLevel::warn;
        case Notice::detail:
            return LogLevel::info;
        default:
            return LogLevel::debug;
    }
}

// "3 refusals on this GPU were not logged"
void append_hidden(LogLine& line, uint64_t count) {
    line.append(count, count == 1 ? " refusal on this GPU was" : " refusals on this GPU were");
    line.append(" not logged");
}

// Logs memory that a cache has and the program can't use, which explains a refusal below the limit.
void say_cached(LogLevel level, Function function, const VirtualGpu& gpu) {
    const Statistics s = process().caches().statistics(gpu);
    LogLine line;
    append_gpu(line, gpu);
    // A program that takes its memory from pools or by cuMemCreate looks in vain for an effect of its setting.
    if (function != Function::cuMemAlloc_v2 && s.allocations == 0 && s.segments_taken == 0) {
        log_line(level, line.append(": the cache is not used: this program has asked cuMemAlloc for nothing"));
        return;
    }
    line.append(": the cache holds ", format_size(s.reserved.current), " in ");
    line.append(s.segments, s.segments == 1 ? " segment: " : " segments: ");
    line.append(format_size(s.allocated.current), " allocated, ");
    line.append(format_size(s.active.current - s.allocated.current));
    line.append(" freed but possibly in use by the GPU; the largest free block is ");
    line.append(format_size(s.largest_free));
    log_line(level, line);
}

// A context alone is too large for the limit: nothing that the program could free would help. False otherwise.
bool say_context_too_large(LogLevel level, Function function, const VirtualGpu& gpu, const LimitError& why,
                           uint64_t headroom) {
    const std::string_view symbol = kFunctions[static_cast<size_t>(function)].symbol;
    const bool context = starts_with(symbol, "cuCtxCreate") || symbol == "cuDevicePrimaryCtxRetain";
    if (!context || why.requested <= gpu.limit()) return false;
    constexpr uint64_t kMiB = 1 << 20;
    LogLine line;
    line.append("out of memory on ");
    append_gpu(line, gpu);
    // A part is charged its share.
    const bool part = gpu.physical().is_split();
    line.append(": ", symbol, " failed: a context on this GPU takes ");
    line.append(format_size(why.requested), part ? " of this partition, which has " : ", more than the limit of ");
    line.append(format_size(gpu.limit()), " from ", gpu.slice().origin);
    line.append(". With ", format_size(headroom));
    line.append(" kept for the driver (headroom), the ", part ? "partition must have" : "limit must be", " at least ");
    line.append((why.requested + headroom) / kMiB + 1, "MiB");
    log_line(level, line);
    return true;
}

// Once in a process and for a GPU. Where `cuslice run` has named the group, it has said the line for the whole job.
void say_group(const VirtualGpu& gpu) {
    const ledger::GroupTerms* const found = gpu.siblings().found_group();
    const Entry* const named = find(process().settings(), Key::group);
    if (!found || !named || named->rank.level != 0 || !grouped.first(*gpu.physical().parts().front())) return;
    ledger::GroupTerms terms = *found;
    if (shares_container(process().settings())) terms.similar[0] = '\0';  // nobody has chosen these names
    LogLine place;
    append_gpu(place, gpu);
    const auto line =
        ledger::describe_group(gpu_state().sharing.group, place, terms, gpu.physical().whole_slice().group_limit);
    if (!line.empty()) log_line(LogLevel::warn, LogLine(line));
}

void say_nothing_reserved(const VirtualGpu& gpu) {
    const bool has_limit = gpu.slice().job_limit != ledger::kNoLimitBytes;
    if (!gpu_state().sharing.begins_job || has_limit || !unreserved.first(gpu)) return;
    LogLine line;
    append_gpu(line, gpu);
    log_line(LogLevel::warn, line.append(": admission: this program has no limit of its own here, so nothing is "
                                         "reserved; set CUSLICE_LIMIT or CUSLICE_FRACTION"));
}

// At which the program's end is worth a line.
LogLevel summary_level() {
    const Entry* const summary = find(process().settings(), Key::summary);
    return summary && summary->number ? LogLevel::warn : LogLevel::info;
}

// Held by other processes. What one of them has cached and doesn't use none but itself can give back.
void append_others(LogLine& line, uint64_t bytes, const VirtualGpu& gpu) {
    line.append(", ", format_size(bytes), " by other processes (see cuslice ps)");
    const ledger::CachingMember other = gpu.siblings().sharing().budget().largest_caching();
    if (other.bytes == 0) return;
    line.append(", of which ", format_size(other.bytes), " by ");
    if (other.is_here)
        line.append("pid ", static_cast<unsigned>(other.pid));
    else
        line.append("a process in another pid namespace");
    append_printable(line.append(" ("), other.command).append("), which ");
    if (other.is_stopped)
        line.append("is stopped, and gives back what its cache doesn't need once it goes on (kill -CONT)");
    else
        line.append("gives back what its cache doesn't need at its next allocation, or by itself with --idle-release");
}

}  // namespace

CUresult refuse(Function function, VirtualGpu& gpu, const LimitError& why, uint64_t asked) {
    if (why.no_place) {
        const Scratch<Refusal> refusal;
        if (refusal) gpu.join(gpu_state().sharing, &*refusal);
        if (refusal) answer_place(gpu, *refusal);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    RefusalNotices& notices = refusals[gpu.ordinal()];
    refusal_counts[gpu.ordinal()].fetch_add(1, std::memory_order_relaxed);
    note_holdings();
    refused_in.store(getpid(), std::memory_order_relaxed);
    const RefusalNotices::Refused refused{static_cast<uint64_t>(function), why.requested, why.used,
                                          gpu_state().frees.snapshot()};
    const uint64_t now = coarse_clock();
    const LogLevel level = level_of(notices.judge(refused, now));
    if (!wants(level)) {
        notices.hide(refused, now);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const bool other = why.of == LimitOf::other_part;
    const VirtualGpu& full = other ? process().gpu(why.part) : gpu;
    const uint64_t headroom = why.headroom ? why.headroom : full.headroom(why.of);
    if (say_context_too_large(level, function, gpu, why, headroom)) return CUDA_ERROR_OUT_OF_MEMORY;
    LogLine line("out of memory on ");
    append_gpu(line, gpu);
    line.append(": ", kFunctions[static_cast<size_t>(function)].symbol, " tried to allocate ");
    if (asked && asked < why.requested) line.append(format_size(asked), ", which may take ");
    line.append(format_size(why.requested));
    if (other) append_gpu(line.append(" on "), full), line.append(", which shares its context");
    line.append("; ", format_size(why.used), " of the ");
    line.append(format_size(why.limit), " limit");
    if (why.of == LimitOf::whole_gpu) line.append(" of the whole GPU");
    if (why.of == LimitOf::rule) line.append(" of rule ", gpu_state().sharing.rule_name());
    if (why.of == LimitOf::group) line.append(" of group ", gpu_state().sharing.group);
    line.append(" are in use ");
    if (why.of == LimitOf::whole_gpu) line.append("by this partition ");
    append_holdings(line.append('('), holdings_of(full));
    line.append(')');
    if (why.others) append_others(line, why.others, gpu);
    if (full.slice().plus_context) line.append(", beside ", format_size(full.driver_footprint()), " of the context");
    if (!full.slice().plus_context || headroom)
        line.append(", and ", format_size(headroom), " are kept for the driver (headroom)");
    line.append(". ");
    line.append("The limit is from ", full.slice().origin_of(why.of, why.limit, full.physical().whole_slice()),
                ". Free memory, or raise the limit");
    if (const uint64_t hidden = level == LogLevel::warn ? notices.take_hidden() : 0)
        append_hidden(line.append(". Before this, "), hidden);
    log_line(level, line);
    if (gpu.caches() && process().caches_anything()) {
        say_cached(level, function, gpu);
        if (level == LogLevel::warn) dump_caches(gpu);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// Nothing is asked of the driver or of NVML any more.
void report_last_refusals() {
    if (refused_in.load(std::memory_order_relaxed) != getpid()) return;
    for (int i = 0, count = process().gpu_count(); i < count; i++) {
        RefusalNotices::Refused last;
        if (!refusals[i].ended_by(coarse_clock(), &last)) continue;
        LogLine line;
        append_gpu(line, process().gpu(i));
        append_hidden(line.append(": "), refusals[i].take_hidden());
        line.append("; the last one before the program ended was ", kFunctions[last.what].symbol);
        log_line(LogLevel::warn, line.append(" of ", format_size(last.bytes)));
    }
}

void report_use() {
    const LogLevel level = summary_level();
    if (!wants(level) || used_in.load(std::memory_order_relaxed) != getpid()) return;
    note_holdings();
    for (int i = 0, count = process().gpu_count(); i < count; i++) {
        const VirtualGpu& gpu = process().gpu(i);
        const uint64_t limit = gpu.limit(), most = std::min(gpu.polling().most_used(), limit);
        if (!gpu.bound() || !gpu.measured() || most == 0) continue;
        LogLine line;
        append_gpu(line, gpu);
        line.append(": this process used at most ", format_size(most), " of the ");
        line.append(format_size(limit), " limit");
        if (most < limit) line.append("; at least ", format_size(limit - most), " were never asked for");
        if (Holdings holdings = most_held(gpu); holdings.count) {
            holdings.sort();
            append_holdings(line.append("; what held most: "), holdings);
        }
        if (const uint64_t all = gpu.siblings().sharing().budget().job_peak(); all > most)
            line.append("; all processes of the job held at most ", format_size(all), " at once");
        if (const uint64_t refused = refusal_counts[i].load(std::memory_order_relaxed))
            line.append("; ", refused, refused == 1 ? " request was" : " requests were", " refused");
        log_line(level, line);
    }
}

namespace {

// Names the remedy where the ledger can't be had.
void append_advice(LogLine& line, const ledger::LedgerError& failure, bool rule) {
    if (failure.no_place) line.append(". Mount the ledger folder into the container, make room for it");
    if (failure.stranger) line.append(". Have the administrator remove what is in the way");
    if (!failure.no_place && !failure.stranger) return;
    line.append(rule ? ", or have the administrator set dir in the system's file to another folder"
                     : ", or set CUSLICE_DIR to another folder for all processes that share the limit");
}

}  // namespace

CUresult answer_place(const VirtualGpu& gpu, const Refusal& refusal) {
    const bool lost = refusal.how == ledger::Joined::lost, unreachable = refusal.how == ledger::Joined::unreachable;
    const bool refused = lost || unreachable || refusal.how == ledger::Joined::refused;
    if (!refused) say_group(gpu), say_nothing_reserved(gpu);
    if (!refused && (!refusal.rebuilt || !placed.first(gpu))) return CUDA_SUCCESS;
    LogLine line;
    append_gpu(line, gpu);
    if (lost) {
        line.append(": ", refusal.failure.text);
    } else if (unreachable) {
        const bool rule = gpu.slice().rule_limit != ledger::kNoLimitBytes;
        if (rule) line.append(": rule ", gpu_state().sharing.rule_name());
        line.append(gpu_state().sharing.begins_job
                        ? ": the limit can't be reserved, so every allocation fails: "
                        : ": the limit can't be shared with other processes, so every allocation fails: ");
        append_advice(line.append(refusal.failure.text), refusal.failure, rule);
    } else if (refused) {
        line.append(": ", ledger::describe_refusal(refusal));
    } else {
        line.append(": the ledger in ", gpu_state().sharing.folder);
        line.append(" was damaged or of another version and has been recreated");
    }
    log_line(LogLevel::warn, line);
    return refused ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void report_no_map(const VirtualGpu& gpu) {
    if (!unmapped.first(gpu)) return;
    LogLine line;
    append_gpu(line, gpu);
    line.append(
        ": the driver's memory lies at addresses from 2^49 on, which the caching allocator can't map: "
        "allocations go to the driver, and nothing is cached");
    log_line(LogLevel::warn, line);
}

void report_missing(const VirtualGpu& gpu, uint64_t bytes) {
    if (!short_of.first(gpu)) return;
    LogLine line;
    append_gpu(line, gpu);
    line.append(": ", format_size(bytes));
    line.append(" of the limit could not be preallocated: the driver is out of memory");
    log_line(LogLevel::warn, line);
}

void report_unpublished() {
    const stats::LedgerError* why = process().caches().publisher().failure();
    if (!why) return;
    LogLine line("cuslice stats can't show this process: ");
    line.append(why->text);
    log_line(LogLevel::debug, line);
}

void report_recording() {
    if (!process().recording().take_news()) return;
    if (const trace::Path* path = process().recording().begun()) {
        LogLine line("allocations are recorded in ");
        log_line(LogLevel::info, line.append(path->view()));
    }
    if (const Reason* why = process().recording().failure()) {
        process().stop_recording();
        LogLine line("recording has stopped, and the program goes on: ");
        log_line(LogLevel::warn, line.append(why->view()));
    }
}

namespace {

// A context always takes memory. Where the GPU's is the host's there may be nothing that tells how much.
void say_unmeasured(const VirtualGpu& gpu) {
    int shared_with_host = 0;
    CUSLICE_REAL(cuDeviceGetAttribute)(&shared_with_host, CU_DEVICE_ATTRIBUTE_INTEGRATED, gpu.ordinal());
    if (!shared_with_host || !gpu.bound() || gpu.driver_footprint() != 0 || !unmeasured.first(gpu)) return;
    LogLine line;
    append_gpu(line, gpu);
    line.append(": NVML does not report this process's memory, and the GPU uses host memory, so contexts and modules ",
                "are not counted: leave room for them with headroom, which is ", format_size(gpu.headroom()));
    log_line(LogLevel::warn, line);
}

bool is_seen(const GpuSelector& selector) {
    for (int i = 0; i < process().gpu_count(); i++)
        if (selector.matches(process().gpu(i).physical().identity())) return true;
    return false;
}

bool names_one_gpu(const Entry& entry) { return !entry.selector.is_general(); }

// By a variable that is set here and now, and is not what a launcher handed over.
bool is_said_here(const Entry& entry) {
    if (entry.rank.source == Source::other_tools) return getenv(kHandOver.data()) == nullptr;
    return entry.rank.source == Source::environment && entry.rank.level == 0;
}

// A variable set here and now has a limit for a GPU that this program doesn't see, and this one has none: perhaps
// CUDA's number was meant, which counts the visible GPUs. cuslice run looks at this before it starts a program.
void say_unlimited(const VirtualGpu& gpu) {
    if (gpu.bound()) return;
    for (const Entry& entry : process().settings().entries()) {
        const bool names_one = is_amount(entry.key) && names_one_gpu(entry);
        if (!names_one || !is_said_here(entry) || is_seen(entry.selector) || !unlimited.first(gpu)) continue;
        LogLine line;
        append_gpu(line, gpu);
        line.append(": no limit; ", entry.origin, " sets one for '", entry.selector.text);
        log_line(LogLevel::warn, line.append("', a GPU that this program doesn't see"));
    }
}

// A variable is often written once for machines of several sizes; one that names a GPU means this one.
void say_too_large(const VirtualGpu& gpu) {
    const uint64_t total = gpu.physical().total();
    const Entry* const limit = find(process().settings(), Key::limit, gpu.physical().identity());
    const bool more = limit && limit->key == Key::limit && limit->number > total && total != 0;
    if (!more || gpu.physical().is_split() || !is_said_here(*limit) || !too_large.first(gpu)) return;
    LogLine line;
    append_gpu(line, gpu);
    line.append(": ", limit->origin, " sets a limit of ", format_size(limit->number));
    line.append(", and it has only ", format_size(total));
    log_line(names_one_gpu(*limit) ? LogLevel::warn : LogLevel::info,
             line.append(", so the program may use all of it"));
}

constinit std::atomic<bool> advised{false};

// Once in a process: the environment is too late for what a framework has read before its first CUDA call.
void say_missed_variables() {
    const std::string_view missed = process().missed_variables();
    if (missed.empty() || advised.exchange(true, std::memory_order_relaxed)) return;
    LogLine line("JAX reads its variables before the first CUDA call. cuslice run sets ");
    line.append(missed, "; under LD_PRELOAD alone, set it in the environment if the program uses JAX");
    log_line(LogLevel::info, line);
}

// Nobody has joined yet where no hook has seen the context begin.
void join_unseen(VirtualGpu& gpu) {
    if (!gpu.slice().in_group || gpu.siblings().found_group()) return;
    const Scratch<Refusal> refusal;
    if (refusal && gpu.join(gpu_state().sharing, &*refusal)) say_group(gpu);
}

// As CUDA writes it. NVML has eight digits of domain, and which of the two was asked depends on the settings.
std::string_view short_pci(std::string_view pci) {
    return pci.find(':') == 8 && starts_with(pci, "0000") ? slice(pci, 4) : pci;
}

}  // namespace

void log_slice(VirtualGpu& gpu, CUcontext context) {
    used_in.store(getpid(), std::memory_order_relaxed);
    if (wants(summary_level())) watch_holdings();
    say_unmeasured(gpu);
    say_unlimited(gpu);
    say_too_large(gpu);
    join_unseen(gpu);
    if (!wants(LogLevel::info) || !logged.first(gpu)) return;
    size_t free = 0, total = 0;
    LogLine line("virtual ");
    line.append(gpu.ordinal(), " → physical ");
    if (const int index = index_of(gpu); index >= 0) line.append(index, ", ");
    line.append(gpu.identity().uuid, ", ", gpu.name(), ", ", short_pci(gpu.identity().pci));
    line.append(", total ", format_size(gpu.physical().total()));
    PushedContext during;
    const bool known = during.push(context) && CUSLICE_REAL(cuMemGetInfo_v2)(&free, &total) == CUDA_SUCCESS;
    during.pop();
    if (known) line.append(", free ", format_size(free));
    if (gpu.bound())
        line.append(", limit ", format_size(gpu.limit()), " from ", gpu.slice().origin);
    else
        line.append(", no limit");
    log_line(LogLevel::info, line);
    say_missed_variables();
}

}  // namespace cuslice
