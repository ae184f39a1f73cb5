// SPDX-License-Identifier: Apache-2.0
// Targets of the exported names, in the order of functions.def (exports_x86_64.S counts in the same way).
#include "shim/runtime/devices.h"
#include "shim/runtime/entry_points.h"
#include "shim/runtime/graphs.h"
#include "shim/runtime/peers.h"
#include "shim/runtime/places.h"
#include "shim/runtime/pools.h"
#include "shim/runtime/streams.h"

namespace cuslice::runtime {

constinit thread_local int chosen = -1;

}  // namespace cuslice::runtime

#define CUSLICE_RUNTIME(symbol, version) CUSLICE_ONLY_##version(symbol)
#define CUSLICE_RUNTIME_NEEDED(symbol)

extern "C" {

#define CUSLICE_ONLY_12(symbol) reinterpret_cast<void*>(&cuslice::runtime::symbol<12>),
#define CUSLICE_ONLY_13(symbol)
#define CUSLICE_RUNTIME_BOTH(symbol) reinterpret_cast<void*>(&cuslice::runtime::symbol<12>),
#define CUSLICE_RUNTIME_FORMS(symbol) reinterpret_cast<void*>(&cuslice::runtime::symbol##_12),
__attribute__((visibility("default"), used)) void* cuslice_runtime_12[] = {
#include "shim/runtime/functions.def"
};
#undef CUSLICE_ONLY_12
#undef CUSLICE_ONLY_13
#undef CUSLICE_RUNTIME_BOTH
#undef CUSLICE_RUNTIME_FORMS

#define CUSLICE_ONLY_12(symbol)
#define CUSLICE_ONLY_13(symbol) reinterpret_cast<void*>(&cuslice::runtime::symbol<13>),
#define CUSLICE_RUNTIME_BOTH(symbol) reinterpret_cast<void*>(&cuslice::runtime::symbol<13>),
#define CUSLICE_RUNTIME_FORMS(symbol) reinterpret_cast<void*>(&cuslice::runtime::symbol##_13),
__attribute__((visibility("default"), used)) void* cuslice_runtime_13[] = {
#include "shim/runtime/functions.def"
};
}
