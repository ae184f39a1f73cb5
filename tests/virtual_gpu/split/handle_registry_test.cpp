// SPDX-License-Identifier: Apache-2.0
// Owners of the driver's handles, whatever comes and goes, and after a refusal.
#include "virtual_gpu/split/handle_registry.h"

#include <map>
#include <random>
#include <utility>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "virtual_gpu/split/register_handle.h"

using namespace cuslice;

namespace {

void* handle(uintptr_t number) { return reinterpret_cast<void*>(number * 64); }

/// A handle's kind is a part of its name.
using Named = std::pair<void*, HandleKind>;
constexpr HandleKind kKinds[] = {HandleKind::stream, HandleKind::module, HandleKind::green_context};

void check_same(HandleRegistry& registry, const std::map<Named, HandleOwner>& model, const Named& named) {
    const HandleOwner found = registry.find(named.first, named.second);
    const auto expected = model.find(named);
    REQUIRE(found.known == (expected != model.end()));
    if (!found.known)
        REQUIRE(found.context == 0);
    if (!found.known)
        return;
    REQUIRE(found.device == expected->second.device);
    REQUIRE(found.context == expected->second.context);
}

}  // namespace

TEST_CASE("handles of split GPUs: each is its owner's until it goes, and no look-up stops short of another") {
    HandleRegistry registry;
    std::map<Named, HandleOwner> model;
    std::mt19937 random(7);
    for (int i = 0; i < 20000; i++) {
        const Named named{handle(random() % 300 + 1), kKinds[random() % 3]};
        if (random() % 3) {
            const HandleOwner owner{true, static_cast<uint8_t>(random() % 64), random() % 8};
            REQUIRE(registry.add(named.first, named.second, owner.device, owner.context));
            model[named] = owner;
        } else {
            registry.remove(named.first, named.second);
            model.erase(named);
        }
        check_same(registry, model, {handle(random() % 300 + 1), kKinds[random() % 3]});
    }
    for (const auto& [named, owner] : model)
        check_same(registry, model, named);
}

TEST_CASE("handles of split GPUs: what ends with a context is taken once each, and nothing of another") {
    HandleRegistry registry;
    for (uintptr_t i = 1; i <= 200; i++)
        REQUIRE(registry.add(handle(i), i % 2 ? HandleKind::stream : HandleKind::module, 1, i % 3));
    std::map<void*, int> taken;
    while (void* one = registry.take_of(1, HandleKind::stream))
        taken[one]++;
    for (uintptr_t i = 1; i <= 200; i++) {
        const bool its = i % 2 && i % 3 == 1;
        CHECK(taken.count(handle(i)) == its);
        if (its)
            CHECK(taken[handle(i)] == 1);
        CHECK(registry.find(handle(i), i % 2 ? HandleKind::stream : HandleKind::module).known == !its);
    }
    CHECK(registry.take_of(9, HandleKind::stream) == nullptr);
    CHECK(HandleRegistry().take_of(1, HandleKind::stream) == nullptr);
}

TEST_CASE("handles of split GPUs: a handle that is made again is the later one's") {
    HandleRegistry registry;
    REQUIRE(registry.add(handle(1), HandleKind::stream, 2, 5));
    REQUIRE(registry.add(handle(1), HandleKind::stream, 3, 6));
    CHECK(registry.find(handle(1), HandleKind::stream).device == 3);
    CHECK(registry.take_of(5, HandleKind::stream) == nullptr);
    registry.remove(handle(1), HandleKind::stream);
    CHECK_FALSE(registry.find(handle(1), HandleKind::stream).known);
    CHECK(registry.take_of(6, HandleKind::stream) == nullptr);
}

TEST_CASE("handles of split GPUs: without memory for one more the others are as before") {
    HandleRegistry registry;
    {
        const tests::NoMemory none;
        CHECK_FALSE(registry.add(handle(1), HandleKind::stream, 1, 1));
    }
    CHECK_FALSE(registry.find(handle(1), HandleKind::stream).known);
    uintptr_t there = 0;
    for (int refused = 0; refused < 2;) {
        bool added = false;
        {
            const tests::NoMemory none;
            added = registry.add(handle(there + 1), HandleKind::stream, 1, there + 1);
        }
        if (!added) {
            refused++;
            CHECK_FALSE(registry.find(handle(there + 1), HandleKind::stream).known);
            for (uintptr_t i = 1; i <= there; i++)
                REQUIRE(registry.find(handle(i), HandleKind::stream).context == i);
            REQUIRE(registry.add(handle(there + 1), HandleKind::stream, 1, there + 1));
        }
        there++;
    }
    CHECK(there > 64);
    for (uintptr_t i = 1; i <= there; i++)
        REQUIRE(registry.find(handle(i), HandleKind::stream).context == i);
}

TEST_CASE("a handle that the driver doesn't destroy keeps its owner") {
    CUstream const stream = static_cast<CUstream>(handle(1));
    REQUIRE(handle_registry().add(stream, HandleKind::stream, 3, 7));
    bool known_meanwhile = true;
    const auto fail = [&] {
        known_meanwhile = handle_registry().find(stream, HandleKind::stream).known;
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    };
    CHECK(destroy_registered(HandleKind::stream, stream, fail) == CUDA_ERROR_ILLEGAL_ADDRESS);
    // Its number could be another's from the driver's end of it on.
    CHECK_FALSE(known_meanwhile);
    const HandleOwner owner = handle_registry().find(stream, HandleKind::stream);
    CHECK(owner.known);
    CHECK(owner.device == 3);
    CHECK(owner.context == 7);
    CHECK(destroy_registered(HandleKind::stream, stream, [] { return CUDA_SUCCESS; }) == CUDA_SUCCESS);
    CHECK_FALSE(handle_registry().find(stream, HandleKind::stream).known);
    // A failure gives no owner to a handle that had none.
    CHECK(destroy_registered(HandleKind::stream, stream, fail) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_FALSE(handle_registry().find(stream, HandleKind::stream).known);
}
