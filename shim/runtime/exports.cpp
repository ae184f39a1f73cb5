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

#define CUSLICE_RUNTIME_NEEDED(symbol)
#define CUSLICE_none(symbol, version)
#define CUSLICE_same(symbol, version) reinterpret_cast<void*>(&cuslice::runtime::symbol<version>),
#define CUSLICE_form(symbol, version) reinterpret_cast<void*>(&cuslice::runtime::symbol##_##version),

extern "C" {

#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) CUSLICE_##in_11(symbol, 11)
__attribute__((visibility("default"), used)) void* cuslice_runtime_11[] = {
#include "shim/runtime/functions.def"
};
#undef CUSLICE_RUNTIME

#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) CUSLICE_##in_12(symbol, 12)
__attribute__((visibility("default"), used)) void* cuslice_runtime_12[] = {
#include "shim/runtime/functions.def"
};
#undef CUSLICE_RUNTIME

#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) CUSLICE_##in_13(symbol, 13)
__attribute__((visibility("default"), used)) void* cuslice_runtime_13[] = {
#include "shim/runtime/functions.def"
};
}
