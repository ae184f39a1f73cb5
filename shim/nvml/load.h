#pragma once
#include "shim/entry.h"
#include "virtual_gpu/driver/nvml.h"

// Before the definition of a hook: checks its type against driver/nvml.h.
#define CUSLICE_NVML_HOOK(name) extern "C" __attribute__((visibility("default"))) ::cuslice::nvml::functions::name name;

namespace cuslice {

// Loads configuration and NVML before the first hooked call. SUCCESS, or what the hook has to return.
nvml::Return nvml_ready();

}  // namespace cuslice
