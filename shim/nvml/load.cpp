// Loading NVML, as seen from an exported function.
#include "shim/nvml/load.h"

#include "shim/log.h"
#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice {

namespace {

constinit std::atomic<bool> refusal_said{false};
constinit std::atomic<bool> named_missing[kNvmlFunctionCount]{};

nvml::Return no_library() { return nvml::ERROR_LIBRARY_NOT_FOUND; }
nvml::Return no_function() { return nvml::ERROR_FUNCTION_NOT_FOUND; }

}  // namespace

nvml::Return nvml_ready() {
    if (ready() == Readiness::bad_configuration) return nvml::ERROR_INVALID_ARGUMENT;
    if (!process().load_nvml()) return nvml::ERROR_LIBRARY_NOT_FOUND;
    if (process().readiness() != Readiness::bad_configuration) return nvml::SUCCESS;
    // Where GPUs are split, only NVML's list tells whether the settings fit.
    if (!refusal_said.exchange(true, std::memory_order_relaxed)) say_to_stderr(line_of(process().error()).view());
    return nvml::ERROR_INVALID_ARGUMENT;
}

// For the exported stubs, when their slot is empty: what to jump to instead.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_nvml(unsigned index) {
    if (nvml_ready() != nvml::SUCCESS) return reinterpret_cast<void*>(&no_library);
    if (void* real = __atomic_load_n(&cuslice_nvml_slots[index], __ATOMIC_ACQUIRE)) return real;
    if (!named_missing[index].exchange(true, std::memory_order_relaxed)) {
        LogLine line;
        say(LogLevel::info,
            line.append(kNvmlFunctions[index]).append(" was called, which the NVML of this driver does not have"));
    }
    return reinterpret_cast<void*>(&no_function);
}

}  // namespace cuslice
