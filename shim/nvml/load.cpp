// Loading NVML, as seen from an exported function.
#include "shim/nvml/load.h"

#include "config/split/plan.h"
#include "shim/log.h"
#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice {

namespace {

constinit std::atomic<bool> refusal_said{false};
constinit std::atomic<bool> named_missing[kNvmlFunctionCount]{};

nvmlReturn_t no_library() { return NVML_ERROR_LIBRARY_NOT_FOUND; }
nvmlReturn_t bad_configuration() { return NVML_ERROR_INVALID_ARGUMENT; }
nvmlReturn_t not_in_this_library() { return NVML_ERROR_FUNCTION_NOT_FOUND; }

}  // namespace

nvmlReturn_t nvml_ready() {
    if (ready() == Readiness::bad_configuration) return NVML_ERROR_INVALID_ARGUMENT;
    return process().load_nvml() ? NVML_SUCCESS : NVML_ERROR_LIBRARY_NOT_FOUND;
}

// Only NVML's list tells whether the settings fit.
nvmlReturn_t virtual_nvml_ready() {
    if (!splits_any(process().settings()) || process().start_nvml()) return NVML_SUCCESS;
    if (process().readiness() != Readiness::bad_configuration) return NVML_ERROR_UNKNOWN;
    if (!refusal_said.exchange(true, std::memory_order_relaxed)) log_bad_configuration();
    return NVML_ERROR_INVALID_ARGUMENT;
}

// For the exported stubs, when their slot is empty: what to jump to instead.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_nvml(unsigned index) {
    const nvmlReturn_t loaded = nvml_ready();
    if (void* real = nvml_slot(index)) return real;
    if (loaded != NVML_SUCCESS)
        return reinterpret_cast<void*>(loaded == NVML_ERROR_LIBRARY_NOT_FOUND ? &no_library : &bad_configuration);
    if (!named_missing[index].exchange(true, std::memory_order_relaxed)) {
        LogLine line;
        log_line(LogLevel::info,
                 line.append(kNvmlFunctions[index]).append(" was called, but this driver's NVML does not have it"));
    }
    return reinterpret_cast<void*>(&not_in_this_library);
}

// The same for what NVML calls itself.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_physical_nvml(unsigned index) {
    void* const real = physical_nvml_slot(index);
    return real ? real : reinterpret_cast<void*>(&not_in_this_library);
}

}  // namespace cuslice
