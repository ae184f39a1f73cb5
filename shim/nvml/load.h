// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/entry.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/parameters.h"

// Defines the hook of an NVML function: CUSLICE_NVML_HOOK(nvmlInit) { ... }. The parameters' types are those of
// NVIDIA's header. The body runs once settings and NVML are loaded; else the hook answers why they aren't. The entrance
// finds it by the name CUSLICE_NVML_HOOKED(nvmlInit) (stubs_x86_64.S), where only a program's calls come through. A
// thread isn't cancelled in it: NVML and the ledgers are asked under locks.
#define CUSLICE_NVML_HOOKED(name) cuslice_nvml_hook_##name
#define CUSLICE_NVML_HOOK(name, ...)                                                         \
    static nvmlReturn_t hooked_##name(CUSLICE_PARAMETERS(name, __VA_ARGS__));                \
    extern "C" __attribute__((visibility("hidden"))) nvmlReturn_t CUSLICE_NVML_HOOKED(name)( \
        CUSLICE_PARAMETERS(name, __VA_ARGS__)) {                                             \
        const ::cuslice::DisableCancellation uncancelled;                                    \
        const nvmlReturn_t loaded = ::cuslice::nvml_ready();                                 \
        return loaded == NVML_SUCCESS ? hooked_##name(__VA_ARGS__) : loaded;                 \
    }                                                                                        \
    nvmlReturn_t hooked_##name(CUSLICE_PARAMETERS(name, __VA_ARGS__))

// The hook of one of several forms: `function` is given what a call of it goes to, and the arguments.
#define CUSLICE_NVML_HOOK_FORM(name, function, ...) \
    CUSLICE_NVML_HOOK(name, __VA_ARGS__) { return function(CUSLICE_REAL_NVML(name) __VA_OPT__(, ) __VA_ARGS__); }

// How often the program has initialised NVML more than it has shut it down. The entrance looks at it, hence the plain
// name.
extern "C" __attribute__((visibility("hidden"))) unsigned cuslice_nvml_starts;

namespace cuslice {

// Loads configuration and NVML before the first hooked call; initialising it is the program's business. SUCCESS, or
// what the hook has to return.
nvmlReturn_t nvml_ready();

// Where GPUs are split, and NVML is initialised: sees to it that it shows the virtual ones. SUCCESS, or what the hook
// has to return.
nvmlReturn_t virtual_nvml_ready();

}  // namespace cuslice
