// Loading NVML, as seen from an exported function.
#include "shim/nvml/load.h"

#include "config/split/plan.h"
#include "shim/log.h"
#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice {

namespace {

constinit std::atomic<bool> refusal_said{false};
constinit std::atomic<bool> named_missing[kNvmlFunctionCount]{};

nvml::Return no_library() { return nvml::ERROR_LIBRARY_NOT_FOUND; }
nvml::Return bad_configuration() { return nvml::ERROR_INVALID_ARGUMENT; }

}  // namespace

// What a function answers that this library lacks; the entrance knows it, too.
extern "C" __attribute__((visibility("hidden"))) nvml::Return cuslice_nvml_lacks() {
    return nvml::ERROR_FUNCTION_NOT_FOUND;
}

nvml::Return nvml_ready() {
    if (ready() == Readiness::bad_configuration) return nvml::ERROR_INVALID_ARGUMENT;
    return process().load_nvml() ? nvml::SUCCESS : nvml::ERROR_LIBRARY_NOT_FOUND;
}

// Only NVML's list tells whether the settings fit.
nvml::Return virtual_nvml_ready() {
    if (!splits_any(process().settings()) || process().start_nvml()) return nvml::SUCCESS;
    if (process().readiness() != Readiness::bad_configuration) return nvml::ERROR_UNKNOWN;
    if (!refusal_said.exchange(true, std::memory_order_relaxed)) say_to_stderr(line_of(process().error()).view());
    return nvml::ERROR_INVALID_ARGUMENT;
}

// For the exported stubs, when their slot is empty: what to jump to instead.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_nvml(unsigned index) {
    if (const nvml::Return loaded = nvml_ready(); loaded != nvml::SUCCESS)
        return reinterpret_cast<void*>(loaded == nvml::ERROR_LIBRARY_NOT_FOUND ? &no_library : &bad_configuration);
    if (void* real = __atomic_load_n(&cuslice_nvml_slots[index], __ATOMIC_ACQUIRE)) return real;
    if (!named_missing[index].exchange(true, std::memory_order_relaxed)) {
        LogLine line;
        say(LogLevel::info,
            line.append(kNvmlFunctions[index]).append(" was called, which the NVML of this driver does not have"));
    }
    return reinterpret_cast<void*>(&cuslice_nvml_lacks);
}

}  // namespace cuslice
