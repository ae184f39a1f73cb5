// Loading, as seen from an exported function: the first call of any kind comes through here.
#include <cstring>

#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"
#include "shim/driver/hook_map.h"
#include "shim/driver/recorded.h"
#include "shim/entry.h"
#include "shim/log.h"
#include "shim/long_wait.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

constinit thread_local bool inside_hook = false;
constinit thread_local bool RecordedCall::inside_recorded = false;

namespace {

constinit std::atomic<bool> reported{false};
constinit std::atomic<bool> named_missing[kFunctionCount]{};

constinit std::atomic<bool> named_unsupported[kFunctionCount]{};

void report_unsupported(const char* symbol) {
    for (std::size_t i = 0; i < kFunctionCount; i++) {
        if (std::strcmp(kFunctions[i].symbol, symbol) != 0) continue;
        if (named_unsupported[i].exchange(true, std::memory_order_relaxed)) return;
    }
    LogLine line;
    say(LogLevel::warn, line.append(symbol).append(" is not supported where a GPU is split"));
}

CUresult not_loaded() { return CUDA_ERROR_NOT_INITIALIZED; }
CUresult not_in_this_driver() { return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER; }

void report(Readiness readiness) {
    if (readiness == Readiness::bad_configuration) return say_to_stderr(line_of(process().error()).view());
    LogLine line;
    if (readiness == Readiness::ready)
        say(LogLevel::debug, line.append("the driver is ").append(process().driver_text()));
    else
        say(LogLevel::info, line.append("no NVIDIA driver here: ").append(process().driver_text()));
}

}  // namespace

Readiness load_and_report() {
    split().on_refusal = report_unsupported;
    process().on_new_context = new_context;
    const Readiness now = process().load();
    if (!reported.exchange(true, std::memory_order_acq_rel)) {
        report(now);
        if (wants(LogLevel::debug)) tell_long_waits();
    }
    return now;
}

// For the exported stubs of functions that pass through, when their slot is empty: what to jump to instead.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_driver(unsigned index) {
    if (ready() != Readiness::ready) return reinterpret_cast<void*>(&not_loaded);
    if (void* real = __atomic_load_n(&cuslice_driver_slots[index], __ATOMIC_ACQUIRE)) return real;
    if (!named_missing[index].exchange(true, std::memory_order_relaxed)) {
        LogLine line;
        say(LogLevel::warn, line.append(kFunctions[index].symbol)
                                .append(" was called, which the driver ")
                                .append(process().driver_text())
                                .append(" does not have; a newer driver does"));
    }
    return reinterpret_cast<void*>(&not_in_this_driver);
}

// By this, one copy of the library recognises another when it looks for the real driver.
extern "C" {
__attribute__((visibility("default"), used)) const char* cuslice_marker() { return "cuslice"; }
}

}  // namespace cuslice
