// SPDX-License-Identifier: Apache-2.0
// Initialisation: where there is no NVML, or the configuration is bad, it fails here, in NVML's own words.
#include "shim/nvml/load.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/nvml/nvml_gpu.h"

using namespace cuslice;

namespace {

bool take_start() {
    unsigned starts = __atomic_load_n(&cuslice_nvml_starts, __ATOMIC_RELAXED);
    do {
        if (starts == 0)
            return false;
    } while (!__atomic_compare_exchange_n(&cuslice_nvml_starts, &starts, starts - 1, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    return true;
}

void add_start() { __atomic_fetch_add(&cuslice_nvml_starts, 1, __ATOMIC_ACQ_REL); }

// Initialises the real NVML on every call, so that the program always gets NVML's own answer.
template <typename Real, typename... Flags>
nvmlReturn_t initialised(Real real, Flags... flags) {
    const auto start = [&] {
        const StartingReal starting;
        return real(flags...);
    };
    if (const nvmlReturn_t result = start(); result != NVML_SUCCESS)
        return result;
    const nvmlReturn_t fits = virtual_nvml_ready();
    if (fits != NVML_SUCCESS)
        CUSLICE_REAL_NVML(nvmlShutdown)();
    else
        add_start();
    return fits;
}

}  // namespace

CUSLICE_NVML_HOOK_FORM(nvmlInit, initialised)
CUSLICE_NVML_HOOK_FORM(nvmlInit_v2, initialised)
CUSLICE_NVML_HOOK_FORM(nvmlInitWithFlags, initialised, flags)

CUSLICE_NVML_HOOK(nvmlShutdown) {
    if (!take_start()) {
        // A shutdown too many would take away the reference that cuslice has itself. Without one NVML answers: success
        // from NVIDIA's where there is no driver, the documented error from others.
        if (nvml_initialised())
            return NVML_ERROR_UNINITIALIZED;
        return CUSLICE_REAL_NVML(nvmlShutdown)();
    }
    const nvmlReturn_t result = CUSLICE_REAL_NVML(nvmlShutdown)();
    if (result != NVML_SUCCESS)
        add_start();
    return result;
}

// The one function that returns text, which a caller prints: there must be some also without a library to ask.
extern "C" __attribute__((visibility("hidden"))) const char* CUSLICE_NVML_HOOKED(nvmlErrorString)(nvmlReturn_t result) {
    if (nvml_ready() == NVML_SUCCESS)
        if (void* real = physical_nvml_slot(NvmlFunction::nvmlErrorString)) {
            const InsideNvml inside;
            return reinterpret_cast<decltype(::nvmlErrorString)*>(real)(result);
        }
    switch (result) {
        case NVML_SUCCESS:
            return "The operation was successful";
        case NVML_ERROR_INVALID_ARGUMENT:
            return "A supplied argument is invalid";
        case NVML_ERROR_LIBRARY_NOT_FOUND:
            return "A shared library couldn't be found or loaded";
        case NVML_ERROR_FUNCTION_NOT_FOUND:
            return "Local version of NVML doesn't implement this function";
        default:
            return "Unknown error";
    }
}
