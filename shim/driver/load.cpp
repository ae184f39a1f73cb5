// SPDX-License-Identifier: Apache-2.0
// Loading, as seen from an exported function: the first call of any kind comes through here.
#include <cstring>

#include "config/resolve.h"
#include "config/unserved.h"
#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"
#include "shim/driver/hook_map.h"
#include "shim/driver/recorded.h"
#include "shim/driver/report.h"
#include "shim/entry.h"
#include "shim/log.h"
#include "shim/long_wait.h"
#include "shim/process/drop_in.h"
#include "virtual_gpu/driver/load.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/selection/host_environment.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

constinit std::atomic<bool> reported{false};
constinit std::atomic<bool> named_missing[kFunctionCount]{};

constinit std::atomic<bool> named_unsupported[kFunctionCount]{};
constinit std::atomic<bool> named_priority[VirtualParts::kMax]{};

void report_unsupported(const char* symbol) {
    for (size_t i = 0; i < kFunctionCount; i++) {
        if (std::strcmp(kFunctions[i].symbol, symbol) != 0)
            continue;
        if (named_unsupported[i].exchange(true, std::memory_order_relaxed))
            return;
        break;
    }
    LogLine line;
    log_line(LogLevel::warn, line.append(symbol, " is not supported where a GPU is split"));
}

// As a setting that can't be served is refused, whatever is logged; once for each part.
void report_bad_priority(const Split::Device& part, int least, int greatest) {
    const auto ordinal = static_cast<int>(&part - split().device(0));
    if (named_priority[ordinal].exchange(true, std::memory_order_relaxed))
        return;
    const GpuIdentity& gpu = process().gpu(ordinal).physical().identity();
    const Entry* entry = find(process().settings(), Key::split, gpu);
    if (!entry)
        return;
    const auto append = [](Reason& text, int number) -> Reason& {
        if (number < 0)
            text.append("-");
        return text.append(number < 0 ? -number : number);
    };
    Reason value, why;
    if (!entry->selector.is_general())
        value.append(entry->selector.text, "=");
    value.append(entry->value);
    append(why.append("the GPU has no stream priority "), *part.part.priority);
    append(why.append(": it has "), least).append(" (the least urgent) to ");
    append(why, greatest).append(" (the most urgent)");
    ConfigError error;
    error.set(entry->origin, value, why);
    log_to_stderr(line_of(error));
}

CUresult not_loaded() { return CUDA_ERROR_NOT_INITIALIZED; }
CUresult not_in_this_driver() { return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER; }

// A setting that the program's owner counts on: it says how much memory or which GPUs the program may have.
const Entry* what_was_asked() {
    for (const Entry& entry : process().settings().entries())
        if (is_amount(entry.key) || entry.key == Key::gpus || entry.key == Key::split || entry.key == Key::group_limit)
            return &entry;
    return nullptr;
}

// Programs that merely look for a GPU go on without one, so it is worth a warning only where something was asked for.
void report_no_driver() {
    LogLine line;
    const Entry* const asked = what_was_asked();
    line.append("no NVIDIA driver here");
    if (asked)
        line.append(" for ", asked->origin);
    line.append(": ", process().driver_text());
    const Settings& settings = process().settings();
    const bool chosen = find(settings, Key::driver) || find(settings, Key::fake);
    if (asked && !chosen)
        line.append(". ", kNoDriverAdvice);
    log_line(asked ? LogLevel::warn : LogLevel::info, line);
}

// The first copy in LD_PRELOAD is the one that is called, so it says so.
void report_other_copy() {
    char path[512];
    if (!find_other_copy(path, sizeof(path)))
        return;
    LogLine line("cuslice is preloaded twice: ");
    log_line(LogLevel::warn, line.append(path, " is ignored. Name one libcuslice.so in LD_PRELOAD"));
}

// Users who put the library in HAMi-core's place rely on what HAMi-core does.
void report_unserved() {
    const HostEnvironment environment;
    for (const char* const* line = environment.lines(); *line; line++) {
        const std::string_view text(*line);
        const size_t equals = text.find('=');
        if (equals == text.npos)
            continue;
        const std::string_view name = slice(text, 0, equals), value = slice(text, equals + 1);
        const Unserved* const unserved = find_unserved(name, value);
        if (!unserved || unserved->tool != OtherTool::hami)
            continue;
        LogLine notice;
        notice.append(name, ": ", value, ": has no effect here: ", unserved->why);
        log_line(LogLevel::warn, notice);
    }
}

void report(Readiness readiness) {
    if (readiness == Readiness::bad_configuration)
        return log_bad_configuration();
    report_other_copy();
    if (is_drop_in())
        report_unserved();
    if (const char* past_us = process().driver_past_us(); past_us && what_was_asked()) {
        LogLine line;
        log_line(
            LogLevel::warn,
            line.append(past_us, " was loaded past cuslice (RTLD_DEEPBIND): code that calls it directly has no limit"));
    }
    if (was_cleared()) {
        LogLine line("the program has cleared its environment: its settings from cuslice run still hold, ");
        log_line(LogLevel::warn, line.append("but the programs that it starts have none"));
    }
    if (readiness != Readiness::ready)
        return report_no_driver();
    LogLine line;
    log_line(LogLevel::info,
             line.append("the driver is ", process().driver_text(), ", found ", process().driver_found()));
    if (const std::string_view file = process().settings().unreachable_file(); !file.empty()) {
        LogLine passed_over;
        passed_over.append(file, ": skipped: a folder on its path can't be entered");
        log_line(LogLevel::info, passed_over);
    }
}

[[gnu::noinline]] void report_missing_function(unsigned index) {
    LogLine line;
    log_line(LogLevel::warn, line.append(kFunctions[index].symbol, " was called, but the driver ",
                                         process().driver_text(), " does not have it; a newer driver does"));
}

}  // namespace

Readiness load_and_report() {
    split().on_refusal = report_unsupported;
    split().on_bad_priority = report_bad_priority;
    process().on_new_context = new_context;
    report_turns();
    watch_cancellation_types();
    const Readiness now = process().load();
    if (!reported.exchange(true, std::memory_order_acq_rel)) {
        report(now);
        if (wants(LogLevel::debug))
            tell_long_waits();
    }
    return now;
}

// For the exported stubs of functions that pass through, when their slot is empty: what to jump to instead.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_driver(unsigned index) {
    const Readiness now = ready();
    if (void* real = driver_slot(index))
        return real;
    if (now != Readiness::ready)
        return reinterpret_cast<void*>(&not_loaded);
    if (!named_missing[index].exchange(true, std::memory_order_relaxed))
        report_missing_function(index);
    return reinterpret_cast<void*>(&not_in_this_driver);
}

// By this, one copy of the library recognises another when it looks for the real driver.
extern "C" {
__attribute__((visibility("default"), used)) const char* cuslice_marker() { return "cuslice"; }
}

}  // namespace cuslice
