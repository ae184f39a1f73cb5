#include "shim/driver/hook_map.h"

#include <cstring>
#include <iterator>

#include "shim/process/process.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

struct Hook {
    Function function;
    void* address;
};

// The functions whose route is `hook`. A missing definition is a link error, a wrong signature a compile error.
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) CUSLICE_ROUTE_##route(symbol)
#define CUSLICE_ROUTE_pass(symbol)
#define CUSLICE_ROUTE_hook(symbol) {Function::symbol, reinterpret_cast<void*>(&::symbol)},
#define CUSLICE_ROUTE_checked(symbol)
const Hook kHooks[] = {
#include "virtual_gpu/driver/functions.def"
};
#undef CUSLICE_ROUTE_hook
#undef CUSLICE_ROUTE_checked

// Those whose route is `checked`.
#define CUSLICE_ROUTE_hook(symbol)
#define CUSLICE_ROUTE_checked(symbol) {Function::symbol, reinterpret_cast<void*>(&::symbol)},
const Hook kChecked[] = {
#include "virtual_gpu/driver/functions.def"
};
#undef CUSLICE_FUNCTION
#undef CUSLICE_ROUTE_hook
#undef CUSLICE_ROUTE_checked

constexpr const char* kHookedNames[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) CUSLICE_ROUTE_##route(name)
#define CUSLICE_ROUTE_hook(name) #name,
#define CUSLICE_ROUTE_checked(name)
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_FUNCTION
#undef CUSLICE_ROUTE_hook
#undef CUSLICE_ROUTE_checked
#undef CUSLICE_ROUTE_pass
};

constinit HookMap the_map{};
constinit std::atomic<bool> built{false};

}  // namespace

const HookMap& hook_map() {
    if (!built.load(std::memory_order_acquire)) {
        the_map.build();
        built.store(true, std::memory_order_release);
    }
    return the_map;
}

void HookMap::build() {
    static_assert(std::size(kHooks) + std::size(kChecked) <= kMostHooks);
    const auto add = [&](const Hook& hook) {
        const void* real = physical_slot(hook.function);
        if (!real) return;
        std::size_t i = home(real);
        for (const void* there; (there = rows_[i].real.load(std::memory_order_relaxed)) && there != real;)
            i = (i + 1) % kRows;
        rows_[i].real.store(real, std::memory_order_relaxed);
        rows_[i].hook.store(hook.address, std::memory_order_relaxed);
    };
    // Beneath the hooks, where GPUs are split.
    for (std::size_t i = 0; i < kFunctionCount; i++)
        if (split_from_slots[i]) add({static_cast<Function>(i), cuslice_driver_slots[i]});
    for (const Hook& hook : kHooks) add(hook);
    if (!process().may_cache()) return;
    for (const Hook& hook : kChecked) add(hook);
}

void* HookMap::hook_for(const void* real) const {
    for (std::size_t i = home(real);; i = (i + 1) % kRows) {
        const void* there = rows_[i].real.load(std::memory_order_relaxed);
        if (there == real) return rows_[i].hook.load(std::memory_order_relaxed);
        if (!there) return nullptr;
    }
}

int HookMap::hooked_name(const char* name) {
    static_assert(std::size(kHookedNames) <= kMostHooks);
    int index = 0;
    for (const char* hooked : kHookedNames) {
        if (std::strcmp(hooked, name) == 0) return index;
        index++;
    }
    return -1;
}

bool HookMap::is_listed_form(const char* name, const void* real) {
    for (std::size_t i = 0; i < kFunctionCount; i++)
        if (physical_slot(static_cast<Function>(i)) == real && std::strcmp(kFunctions[i].name, name) == 0) return true;
    return false;
}

}  // namespace cuslice
