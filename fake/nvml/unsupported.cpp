// SPDX-License-Identifier: Apache-2.0
// Every function of nvml_functions.def, weak: those that no other file here defines answer ERROR_NOT_SUPPORTED. They
// need no signature: all return a code, the caller cleans up its arguments, and the first one is looked at only where
// it is known to be a device (refused.cpp).

#include "fake/nvml/refused.h"

#define CUSLICE_NVML_FUNCTION(name, split)                                                  \
    extern "C" __attribute__((weak, visibility("default"))) int name(nvmlDevice_st* first); \
    extern "C" int name(nvmlDevice_st* first) {                                             \
        static constinit std::atomic<bool> said{false};                                     \
        return cuslice::fake::nvml_refuse(#name, first, said);                              \
    }
#include "virtual_gpu/driver/nvml_functions.def"
