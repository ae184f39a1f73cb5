// SPDX-License-Identifier: Apache-2.0
// Where the exported stub of a function jumps to that is looked at in some processes alone: to a gate where time is
// shared, to a check where memory is cached, or to the driver.
#include "shim/driver/checked.h"
#include "shim/driver/gates.h"

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

static void* checked_or(Function function, void* real) {
    void* const checked = process().may_cache() ? checked_of(function) : nullptr;
    return checked ? checked : real;
}

extern "C" {
// Empty until the first call, as the table of the driver's own addresses is.
__attribute__((visibility("hidden"))) void* cuslice_chosen_slots[kFunctionCount] = {};

__attribute__((visibility("hidden"))) void* cuslice_resolve_driver(unsigned index);

__attribute__((visibility("hidden"))) void* cuslice_resolve_chosen(unsigned index) {
    void* const real = cuslice_resolve_driver(index);
    // Otherwise it is something that says why there is none.
    if (!real || real != filled_driver_slot(index))
        return real;
    const auto function = static_cast<Function>(index);
    void* const behind = checked_or(function, real);
    void* const target = process().shares_time() ? gate_before(function, behind) : behind;
    __atomic_store_n(&cuslice_chosen_slots[index], target, __ATOMIC_RELEASE);
    return target;
}
}

}  // namespace cuslice
