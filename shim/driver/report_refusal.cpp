// SPDX-License-Identifier: Apache-2.0
// Refusals: each is said where somebody would want to know, and counted.
#include <unistd.h>

#include "config/printable.h"
#include "config/size.h"
#include "policy/base/kernel_clock.h"
#include "policy/budget/refusal_notices.h"
#include "shim/driver/dump.h"
#include "shim/driver/holdings.h"
#include "shim/driver/report.h"
#include "shim/driver/report_gpu.h"
#include "shim/log.h"
#include "shim/process/process.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

namespace {

constinit RefusalNotices refusals[Process::kMaxGpus];
constinit std::atomic<uint64_t> refusal_counts[Process::kMaxGpus];
constinit std::atomic<pid_t> refused_in{0};  // a forked child has its parent's notices

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
    if (!context || why.requested <= gpu.limit())
        return false;
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

// Held by other processes. What one of them has cached and doesn't use none but itself can give back.
void append_others(LogLine& line, uint64_t bytes, const VirtualGpu& gpu) {
    line.append(", ", format_size(bytes), " by other processes (see cuslice ps)");
    const ledger::CachingMember other = gpu.siblings().sharing().budget().largest_caching();
    if (other.bytes == 0)
        return;
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
        if (refusal)
            gpu.join(&*refusal);
        if (refusal)
            answer_place(gpu, *refusal);
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
    if (say_context_too_large(level, function, gpu, why, headroom))
        return CUDA_ERROR_OUT_OF_MEMORY;
    LogLine line("out of memory on ");
    append_gpu(line, gpu);
    line.append(": ", kFunctions[static_cast<size_t>(function)].symbol, " tried to allocate ");
    if (asked && asked < why.requested)
        line.append(format_size(asked), ", which may take ");
    line.append(format_size(why.requested));
    if (other)
        append_gpu(line.append(" on "), full), line.append(", which shares its context");
    line.append("; ", format_size(why.used), " of the ");
    line.append(format_size(why.limit), " limit");
    if (why.of == LimitOf::whole_gpu)
        line.append(" of the whole GPU");
    if (why.of == LimitOf::rule)
        line.append(" of rule ", gpu_state().sharing.rule_name());
    if (why.of == LimitOf::group)
        line.append(" of group ", gpu_state().sharing.group);
    line.append(" are in use ");
    if (why.of == LimitOf::whole_gpu)
        line.append("by this partition ");
    append_holdings(line.append('('), holdings_of(full));
    line.append(')');
    if (why.others)
        append_others(line, why.others, gpu);
    if (full.slice().plus_context)
        line.append(", beside ", format_size(full.driver_footprint()), " of the context");
    if (!full.slice().plus_context || headroom)
        line.append(", and ", format_size(headroom), " are kept for the driver (headroom)");
    line.append(". ");
    line.append("The limit is from ", origin_of(full, why.of, why.limit), ". Free memory, or raise the limit");
    if (const uint64_t hidden = level == LogLevel::warn ? notices.take_hidden() : 0)
        append_hidden(line.append(". Before this, "), hidden);
    log_line(level, line);
    if (gpu.caches() && process().caches_anything()) {
        say_cached(level, function, gpu);
        if (level == LogLevel::warn)
            dump_caches(gpu);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// Nothing is asked of the driver or of NVML any more.
void report_last_refusals() {
    if (refused_in.load(std::memory_order_relaxed) != getpid())
        return;
    for (const VirtualGpu& gpu : process().gpus()) {
        RefusalNotices& notices = refusals[gpu.ordinal()];
        RefusalNotices::Refused last;
        if (!notices.ended_by(coarse_clock(), &last))
            continue;
        LogLine line;
        append_gpu(line, gpu);
        append_hidden(line.append(": "), notices.take_hidden());
        line.append("; the last one before the program ended was ", kFunctions[last.what].symbol);
        log_line(LogLevel::warn, line.append(" of ", format_size(last.bytes)));
    }
}

uint64_t refusals_of(const VirtualGpu& gpu) { return refusal_counts[gpu.ordinal()].load(std::memory_order_relaxed); }

void append_refusals(LogLine& line, const VirtualGpu& gpu) {
    if (const uint64_t count = refusals_of(gpu))
        line.append("; ", count, count == 1 ? " request was" : " requests were", " refused");
}

}  // namespace cuslice
