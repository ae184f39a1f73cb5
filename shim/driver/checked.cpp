// SPDX-License-Identifier: Apache-2.0
// Where the exported stub of a checked function jumps to.
#include "shim/driver/checked.h"

namespace cuslice {

// Returns the function that CUSLICE_CHECKED defines; null if the route isn't `checked`.
static void* checked_of(Function function) {
    switch (function) {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CUSLICE_ROUTE_##route(symbol)
#define CUSLICE_ROUTE_pass(symbol)
#define CUSLICE_ROUTE_hook(symbol)
#define CUSLICE_ROUTE_checked(symbol) \
    case Function::symbol: {          \
        void* checked_##symbol();     \
        return checked_##symbol();    \
    }
#include "virtual_gpu/driver/functions.def"
        default:
            return nullptr;
    }
}

extern "C" {
// Empty until the first call, as the table of the driver's own addresses is.
__attribute__((visibility("hidden"))) void* cuslice_checked_slots[kFunctionCount] = {};

__attribute__((visibility("hidden"))) void* cuslice_resolve_driver(unsigned index);

__attribute__((visibility("hidden"))) void* cuslice_resolve_checked(unsigned index) {
    void* const real = cuslice_resolve_driver(index);
    // Otherwise it is something that says why there is none.
    if (!real || real != filled_driver_slot(index))
        return real;
    void* const target = process().may_cache() ? checked_of(static_cast<Function>(index)) : real;
    __atomic_store_n(&cuslice_checked_slots[index], target, __ATOMIC_RELEASE);
    return target;
}
}

}  // namespace cuslice
