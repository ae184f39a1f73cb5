// SPDX-License-Identifier: Apache-2.0
// Maps the driver's functions to those of ours that a program gets instead.
#include "shim/driver/hook_map.h"

#include <map>
#include <memory>
#include <string>

#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// Our exported function for this one of the driver's; null if it passes through.
const void* exported(Function function) {
    static const void* const all[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) EXPORTED_##route(symbol),
#define EXPORTED_pass(symbol) nullptr
#define EXPORTED_hook(symbol) reinterpret_cast<const void*>(&::symbol)
#define EXPORTED_checked(symbol) EXPORTED_hook(symbol)
#include "virtual_gpu/driver/functions.def"
    };
    return all[static_cast<size_t>(function)];
}

/// An address that is never followed.
const void* at(uintptr_t address) { return reinterpret_cast<const void*>(address); }

std::unique_ptr<HookMap> map_of_now() {
    auto map = std::make_unique<HookMap>();
    map->build();
    return map;
}

}  // namespace

TEST_CASE("a function that is hooked or checked is ours, and the driver's where it passes through") {
    const Within within(kCached);
    if (!within)
        return;
    unsigned ours = 0, theirs = 0;
    for (size_t i = 0; i < kFunctionCount; i++) {
        const auto function = static_cast<Function>(i);
        const void* real = driver_slot(function);
        if (!real)
            continue;  // not in this driver
        CAPTURE(kFunctions[i].symbol);
        if (hook_map().hook_for(real) != exported(function))
            FAIL_CHECK("another function");
        ++(exported(function) ? ours : theirs);
    }
    CHECK(ours > 150);
    CHECK(theirs > 200);
    CHECK(hook_map().hook_for(&ours) == nullptr);
    CHECK(&hook_map() == &hook_map());
}

TEST_CASE("functions whose addresses fall on one place of the map are told apart") {
    const Within within(kCached);
    if (!within)
        return;
    // The same in their low bits, whatever number of places there are: the first ones of the map, or the last.
    const uintptr_t low = GENERATE(uintptr_t{0}, uintptr_t{0xFFFFFF0});
    constexpr uintptr_t kStep = uintptr_t{1} << 32;
    const Instead alloc(Function::cuMemAlloc_v2, at(low + 1 * kStep)),
        free(Function::cuMemFree_v2, at(low + 2 * kStep)), managed(Function::cuMemAllocManaged, at(low + 3 * kStep)),
        pitch(Function::cuMemAllocPitch_v2, at(low + 4 * kStep));
    const auto map = map_of_now();
    for (const Function function :
         {Function::cuMemAlloc_v2, Function::cuMemFree_v2, Function::cuMemAllocManaged, Function::cuMemAllocPitch_v2})
        CHECK(map->hook_for(driver_slot(function)) == exported(function));
    CHECK(map->hook_for(at(low + 5 * kStep)) == nullptr);
}

TEST_CASE("what the driver has twice is one function of ours") {
    const Within within(kCached);
    if (!within)
        return;
    const Instead here(Function::cuMemFreeAsync, at(0x7770)), there(Function::cuMemFreeAsync_ptsz, at(0x7770));
    const void* hook = map_of_now()->hook_for(at(0x7770));
    CHECK((hook == exported(Function::cuMemFreeAsync) || hook == exported(Function::cuMemFreeAsync_ptsz)));
}

TEST_CASE("a name has a number if some form of it is hooked, and each name its own") {
    std::map<int, std::string> names;
    for (const FunctionRow& row : kFunctionRows) {
        const std::string name(row.name);
        CAPTURE(name);
        const int number = HookMap::hooked_name(name.c_str());
        if (row.route == Route::hook)
            CHECK(number >= 0);
        if (number < 0)
            continue;
        CHECK(number < static_cast<int>(HookMap::kMaxHooks));
        CHECK(names.try_emplace(number, name).first->second == name);
        CHECK(HookMap::hooked_name(name.c_str()) == number);
    }
    CHECK(names.size() > 60);
    CHECK(HookMap::hooked_name("cuDriverGetVersion") == -1);
    CHECK(HookMap::hooked_name("cuMemcpyHtoD") == -1);
    CHECK(HookMap::hooked_name("cuMemAlloc_v2") == -1);
    CHECK(HookMap::hooked_name("") == -1);
}

TEST_CASE("an address is a form of the name under which the driver has it, and of no other") {
    const Within within(kCached);
    if (!within)
        return;
    CHECK(HookMap::is_listed_form("cuCtxGetDevice", driver_slot(Function::cuCtxGetDevice)));
    CHECK(HookMap::is_listed_form("cuMemAlloc", driver_slot(Function::cuMemAlloc_v2)));
    CHECK_FALSE(HookMap::is_listed_form("cuMemFree", driver_slot(Function::cuMemAlloc_v2)));
    CHECK_FALSE(HookMap::is_listed_form("cuMemAlloc", driver_slot(Function::cuMemFree_v2)));
    CHECK_FALSE(HookMap::is_listed_form("cuMemAlloc", &within));
    CHECK_FALSE(HookMap::is_listed_form("cuNone", driver_slot(Function::cuMemAlloc_v2)));
}
