// Every function of nvml_functions.def, weak: those that no other file here defines answer ERROR_NOT_SUPPORTED. They
// need no signature: all return a code, and the caller cleans up its arguments.

#include "virtual_gpu/fake/nvml/log.h"

#define CUSLICE_NVML_FUNCTION(name)                                     \
    extern "C" __attribute__((weak, visibility("default"))) int name(); \
    extern "C" int name() {                                             \
        static std::atomic<bool> said{false};                           \
        return cuslice::fake::nvml_unsupported(#name, said);            \
    }
#include "virtual_gpu/driver/nvml_functions.def"
#undef CUSLICE_NVML_FUNCTION
