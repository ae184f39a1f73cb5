// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/hook_map.h"

#include <cstring>

#include "shim/process/process.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

// The library's exports for functions that don't pass through in every process. A missing definition is a link error.
void* const kExported[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CUSLICE_EXPORTED_##route##_##turn(symbol),
#define CUSLICE_EXPORTED_pass_free(symbol) nullptr
#define CUSLICE_EXPORTED_pass_gated(symbol) reinterpret_cast<void*>(&::symbol)
#define CUSLICE_EXPORTED_hook_free(symbol) reinterpret_cast<void*>(&::symbol)
#define CUSLICE_EXPORTED_hook_gated(symbol) reinterpret_cast<void*>(&::symbol)
#define CUSLICE_EXPORTED_checked_free(symbol) reinterpret_cast<void*>(&::symbol)
#define CUSLICE_EXPORTED_checked_gated(symbol) reinterpret_cast<void*>(&::symbol)
#include "virtual_gpu/driver/functions.def"
};

constexpr auto kHooks = functions_of_route<Route::hook>();
constexpr auto kChecked = functions_of_route<Route::checked>();
constexpr auto kGated = functions_where<[](const FunctionRow& row) { return row.gated && row.route != Route::hook; }>();

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
    static_assert(kHooks.size() + kChecked.size() + kGated.size() <= kMaxHooks);
    const auto add = [&](Function function, void* hook) {
        const void* real = physical_slot(function);
        if (!real)
            return;
        size_t i = home(real);
        for (const void* there; (there = rows_[i].real.load(std::memory_order_relaxed)) && there != real;)
            i = (i + 1) % kRows;
        rows_[i].real.store(real, std::memory_order_relaxed);
        rows_[i].hook.store(hook, std::memory_order_relaxed);
    };
    const auto add_exported = [&](Function function) { add(function, kExported[static_cast<size_t>(function)]); };
    // Beneath the hooks, where GPUs are split.
    for (size_t i = 0; i < kFunctionCount; i++)
        if (split_from_slots[i])
            add(static_cast<Function>(i), filled_driver_slot(i));
    for (const Function hook : kHooks)
        add_exported(hook);
    if (process().may_cache())
        for (const Function checked : kChecked)
            add_exported(checked);
    if (process().shares_time())
        for (const Function gated : kGated)
            add_exported(gated);
}

void* HookMap::hook_for(const void* real) const {
    for (size_t i = home(real);; i = (i + 1) % kRows) {
        const void* there = rows_[i].real.load(std::memory_order_relaxed);
        if (there == real)
            return rows_[i].hook.load(std::memory_order_relaxed);
        if (!there)
            return nullptr;
    }
}

int HookMap::hooked_name(const char* name) {
    int index = 0;
    for (const Function hook : kHooks) {
        if (std::strcmp(kFunctions[static_cast<size_t>(hook)].name, name) == 0)
            return index;
        index++;
    }
    return -1;
}

bool HookMap::is_listed_form(const char* name, const void* real) {
    for (size_t i = 0; i < kFunctionCount; i++)
        if (physical_slot(static_cast<Function>(i)) == real && std::strcmp(kFunctions[i].name, name) == 0)
            return true;
    return false;
}

}  // namespace cuslice
