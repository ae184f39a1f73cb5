#pragma once
#include "shim/entry.h"
#include "virtual_gpu/driver/nvml.h"

// The hook that stands before a function of NVML's: CUSLICE_NVML_HOOK(name) declares it, with the type that
// driver/nvml.h gives it, and its definition follows under the name CUSLICE_NVML_HOOKED(name). By that name the
// entrance finds it (stubs_x86_64.S), where only a program's calls come through.
#define CUSLICE_NVML_HOOKED(name) cuslice_nvml_hook_##name
#define CUSLICE_NVML_HOOK(name) \
    extern "C" __attribute__((visibility("hidden"))) ::cuslice::nvml::functions::name CUSLICE_NVML_HOOKED(name);

namespace cuslice {

// Loads configuration and NVML before the first hooked call; initialising it is the program's business. SUCCESS, or
// what the hook has to return.
nvml::Return nvml_ready();

// Where GPUs are split, and NVML is initialised: sees to it that it shows the virtual ones. SUCCESS, or what the hook
// has to return.
nvml::Return virtual_nvml_ready();

}  // namespace cuslice
