// SPDX-License-Identifier: Apache-2.0
// Every name that the genuine library exports, as a weak symbol that fails by name: it is there unless a source of the
// library defines it. Compiled once for each library, with CUSLICE_EXPORTS, CUSLICE_REFUSED (the status that it gives)
// and CUSLICE_LIBRARY_MAJOR. None of NVIDIA's declarations are here, so that one shape suits them all: a caller cleans
// up its own arguments (x86_64 System V), and a status has the size of int.

#include "fake/libraries/report.h"
#include "fake/of_version.h"

#include <atomic>

#define CUSLICE_EXPORT(name, versions) CUSLICE_OF_##versions(CUSLICE_REFUSE(name))
#define CUSLICE_EXPORT_64(name, versions) \
    CUSLICE_EXPORT(name, versions) CUSLICE_OF_from_12(CUSLICE_EXPORT(name##_64, versions))
#define CUSLICE_REFUSE(name)                                      \
    extern "C" [[gnu::weak]] int refused_##name() __asm__(#name); \
    int refused_##name() {                                        \
        static constinit std::atomic<bool> said{false};           \
        cuslice::fake::report_unsupported(#name, said);           \
        return CUSLICE_REFUSED;                                   \
    }
#include CUSLICE_EXPORTS
