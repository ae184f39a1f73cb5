// SPDX-License-Identifier: Apache-2.0
// The heap against a plain map: no block overlaps another, and every address leads to its block.

#include "fake/driver/heap.h"

#include <map>
#include <random>

#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

constexpr Address base = Address{1} << 40;
constexpr size_t MiB = 1 << 20;

}  // namespace

TEST_CASE("random blocks neither overlap nor get lost", "[fuzz]") {
    Heap heap;
    heap.open(base, size_t{4} << 30);
    std::map<Address, uint64_t> model;
    std::mt19937 random(17);
    for (int step = 0; step < 200000; step++) {
        if (model.empty() || random() % 100 < 55) {
            const uint64_t bytes = 1 + (random() % 50 == 0 ? random() % (8 * MiB) : random() % 9000);
            const Block block = heap.allocate(bytes, BlockKind::Device, 7);
            REQUIRE(block);
            REQUIRE(block.base % 512 == 0);
            REQUIRE(block.base >= base);
            const auto next = model.lower_bound(block.base);
            REQUIRE((next == model.end() || block.base + bytes <= next->first));
            REQUIRE((next == model.begin() || std::prev(next)->first + std::prev(next)->second <= block.base));
            model[block.base] = bytes;
        } else {
            auto victim = model.lower_bound(base + random() % (uint64_t{4} << 30));
            if (victim == model.end())
                victim = model.begin();
            const auto [at, bytes] = *victim;
            const Block middle = heap.find(at + random() % bytes);
            REQUIRE(middle);
            REQUIRE(middle.base == at);
            REQUIRE(middle.record->asked == bytes);
            REQUIRE_FALSE(heap.find(at + bytes).base == at);
            heap.give_back(heap.at(at));
            REQUIRE_FALSE(heap.at(at));
            model.erase(victim);
        }
    }
    size_t counted = 0;
    heap.each([&](const Block& block) {
        counted++;
        REQUIRE(model.at(block.base) == block.record->asked);
    });
    CHECK(counted == model.size());
}

TEST_CASE("when the addresses are used up, freed ones are merged and used again") {
    Heap heap;
    heap.open(base, 64 * MiB);
    std::map<Address, int> small;
    // All addresses as small spans, then all freed: a large block must still fit.
    for (Block block = heap.allocate(100000, BlockKind::Device, 1); block;
         block = heap.allocate(100000, BlockKind::Device, 1)) {
        small[block.base] = 1;
    }
    REQUIRE(small.size() > 500);
    CHECK_FALSE(heap.allocate(3 * MiB, BlockKind::Device, 1));
    for (const auto& [at, one] : small)
        heap.give_back(heap.at(at));
    const Block large = heap.allocate(60 * MiB, BlockKind::Device, 1);
    REQUIRE(large);
    CHECK(heap.find(large.base + 59 * MiB).base == large.base);
    heap.give_back(large);
    CHECK(heap.allocate(512, BlockKind::Device, 1));
}

TEST_CASE("addresses outside and between blocks lead nowhere") {
    Heap heap;
    heap.open(base, 64 * MiB);
    CHECK_FALSE(heap.find(base));
    CHECK_FALSE(heap.find(0));
    CHECK_FALSE(heap.find(base - 1));
    CHECK_FALSE(heap.find(base + 64 * MiB));
    const Block block = heap.allocate(10, BlockKind::Device, 1);
    CHECK(heap.find(block.base + 9));
    CHECK_FALSE(heap.find(block.base + 10));
    CHECK_FALSE(heap.find(block.base + 512));
}
