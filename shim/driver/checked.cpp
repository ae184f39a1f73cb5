// Where the exported stub of a checked function jumps to.
#include "shim/driver/checked.h"

namespace cuslice {

namespace {

void* checked_of(Function function) {
    switch (function) {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) CUSLICE_ROUTE_##route(symbol)
#define CUSLICE_ROUTE_pass(symbol)
#define CUSLICE_ROUTE_hook(symbol)
#define CUSLICE_ROUTE_checked(symbol) \
    case Function::symbol:            \
        return checked_##symbol();
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_FUNCTION
#undef CUSLICE_ROUTE_pass
#undef CUSLICE_ROUTE_hook
#undef CUSLICE_ROUTE_checked
        default:
            return nullptr;
    }
}

}  // namespace

extern "C" {
// Empty until the first call, as the table of the driver's own addresses is.
__attribute__((visibility("hidden"))) void* cuslice_checked_slots[kFunctionCount] = {};

__attribute__((visibility("hidden"))) void* cuslice_resolve_driver(unsigned index);

__attribute__((visibility("hidden"))) void* cuslice_resolve_checked(unsigned index) {
    void* const real = cuslice_resolve_driver(index);
    if (!real || real != cuslice_driver_slots[index]) return real;  // something that says why there is none
    void* const target = process().may_cache() ? checked_of(static_cast<Function>(index)) : real;
    __atomic_store_n(&cuslice_checked_slots[index], target, __ATOMIC_RELEASE);
    return target;
}
}

}  // namespace cuslice
