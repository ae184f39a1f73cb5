// SPDX-License-Identifier: Apache-2.0
// Loading NVML, as seen from an exported function.
#include "shim/nvml/load.h"

#include <algorithm>
#include <iterator>

#include "config/split/plan.h"
#include "shim/log.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/nvml/nvml_gpu.h"

extern "C" {
constinit unsigned cuslice_nvml_starts = 0;
// The hooks of this folder, null where there is none (stubs_x86_64.S).
extern __attribute__((visibility("hidden"))) void* const cuslice_nvml_hooks[cuslice::kNvmlFunctionCount];
}

namespace cuslice {

namespace {

constinit std::atomic<bool> refusal_said{false}, table_taken{false};
constinit std::atomic<bool> named_missing[kNvmlFunctionCount]{};

nvmlReturn_t no_library() { return NVML_ERROR_LIBRARY_NOT_FOUND; }
nvmlReturn_t bad_configuration() { return NVML_ERROR_INVALID_ARGUMENT; }
nvmlReturn_t not_in_this_library() { return NVML_ERROR_FUNCTION_NOT_FOUND; }
nvmlReturn_t not_initialised() { return NVML_ERROR_UNINITIALIZED; }

// Functions that NVML answers also before it is initialised, those included that initialise it.
bool answers_unstarted(unsigned index) {
    using enum NvmlFunction;
    constexpr NvmlFunction kAnswering[] = {nvmlInit,
                                           nvmlInit_v2,
                                           nvmlInitWithFlags,
                                           nvmlErrorString,
                                           nvmlSystemGetCudaDriverVersion,
                                           nvmlSystemGetCudaDriverVersion_v2};
    return std::find(std::begin(kAnswering), std::end(kAnswering), static_cast<NvmlFunction>(index)) !=
           std::end(kAnswering);
}

}  // namespace

nvmlReturn_t nvml_ready() {
    if (ready() == Readiness::bad_configuration)
        return NVML_ERROR_INVALID_ARGUMENT;
    return process().load_nvml() ? NVML_SUCCESS : NVML_ERROR_LIBRARY_NOT_FOUND;
}

// Only NVML's list tells whether the settings fit.
nvmlReturn_t virtual_nvml_ready() {
    if (!splits_any(process().settings()) || process().start_nvml())
        return NVML_SUCCESS;
    if (process().readiness() != Readiness::bad_configuration)
        return NVML_ERROR_UNKNOWN;
    if (!refusal_said.exchange(true, std::memory_order_relaxed))
        log_bad_configuration();
    return NVML_ERROR_INVALID_ARGUMENT;
}

// For the exported stubs, when their slot is empty: what to jump to instead.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_nvml(unsigned index) {
    const nvmlReturn_t loaded = nvml_ready();
    if (void* real = nvml_slot(index))
        return real;
    if (loaded != NVML_SUCCESS)
        return reinterpret_cast<void*>(loaded == NVML_ERROR_LIBRARY_NOT_FOUND ? &no_library : &bad_configuration);
    if (!named_missing[index].exchange(true, std::memory_order_relaxed)) {
        LogLine line;
        log_line(LogLevel::info,
                 line.append(kNvmlFunctions[index], " was called, but this driver's NVML does not have it"));
    }
    return reinterpret_cast<void*>(&not_in_this_library);
}

// The same for a program that has not initialised NVML, or has shut it down as often. Where cuslice has it initialised
// for itself, NVML would answer.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_unstarted_nvml(unsigned index) {
    // Tools of NVIDIA's may initialise it by functions of that table, which is passed through.
    if (static_cast<NvmlFunction>(index) == NvmlFunction::nvmlInternalGetExportTable)
        table_taken.store(true, std::memory_order_relaxed);
    const bool uncounted = table_taken.load(std::memory_order_relaxed) || !nvml_initialised();
    if (!uncounted && !answers_unstarted(index))
        return reinterpret_cast<void*>(&not_initialised);
    if (void* const hook = cuslice_nvml_hooks[index])
        return hook;
    return cuslice_resolve_nvml(index);
}

// The same for what NVML calls itself.
extern "C" __attribute__((visibility("hidden"))) void* cuslice_resolve_physical_nvml(unsigned index) {
    void* const real = physical_nvml_slot(index);
    return real ? real : reinterpret_cast<void*>(&not_in_this_library);
}

}  // namespace cuslice
