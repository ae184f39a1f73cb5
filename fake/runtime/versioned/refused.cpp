// SPDX-License-Identifier: Apache-2.0
// Every name that the genuine library exports and this one doesn't have. Each fails by name: cudaErrorNotSupported, and
// one line the first time. NVIDIA's headers are not included here, so that one shape suits them all: a caller cleans up
// its own arguments (x86_64 System V), and all of these return an int-sized error.

#define CUSLICE_LIBRARY_MAJOR (CUSLICE_CUDART_VERSION / 1000)
#include "fake/of_version.h"
#include "fake/runtime/versioned/refuse.h"

#include <atomic>

#define CUSLICE_CUDART_EXPORT(name, versions, state) CUSLICE_OF_##versions(CUSLICE_CUDART_##state(name))
#define CUSLICE_CUDART_defined(name)
#define CUSLICE_CUDART_refused(name)                              \
    extern "C" int refused_##name() __asm__(#name);               \
    int refused_##name() {                                        \
        static constinit std::atomic<bool> said{false};           \
        return cuslice::fake::refuse(#name, said.exchange(true)); \
    }
#include "fake/runtime/exports.def"
