// Every name that the genuine library exports and this one doesn't have. Each fails by name: cudaErrorNotSupported, and
// one line the first time. NVIDIA's headers are not included here, so that one shape suits them all: a caller cleans up
// its own arguments (x86_64 System V), and all of these return an int-sized error.

#include "fake/runtime/versioned/refuse.h"

#include <atomic>

#define CUSLICE_CUDART_EXPORT(name, state) CUSLICE_CUDART_##state(name)
#define CUSLICE_CUDART_defined(name)
#define CUSLICE_CUDART_refused(name)                              \
    extern "C" int refused_##name() __asm__(#name);               \
    int refused_##name() {                                        \
        static constinit std::atomic<bool> said{false};           \
        return cuslice::fake::refuse(#name, said.exchange(true)); \
    }

#if CUSLICE_CUDART_VERSION >= 13000
#include "fake/runtime/exports_13.def"
#else
#include "fake/runtime/exports_12.def"
#endif
