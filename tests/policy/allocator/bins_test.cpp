// SPDX-License-Identifier: Apache-2.0
// The free blocks by size, against a list that is looked through.
#include "policy/allocator/bins.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "tests/catch.h"

using namespace cuslice;

namespace {

constexpr uint64_t kUnit = SizeClass::kUnit;

struct Blocks {
    Block* add(uint64_t bytes) {
        all.push_back(std::make_unique<Block>());
        Block* const block = all.back().get();
        block->bytes = bytes;
        bins.add(block);
        return block;
    }
    uint64_t best(uint64_t bytes) const {
        const Block* block = bins.best(bytes);
        return block ? uint64_t{block->bytes} : 0;
    }

    Bins bins;
    std::vector<std::unique_ptr<Block>> all;
};

}  // namespace

TEST_CASE("where nothing is free there is no best and no largest") {
    Blocks blocks;
    CHECK(blocks.bins.best(1) == nullptr);
    CHECK(blocks.bins.best(~0ull) == nullptr);
    CHECK(blocks.bins.largest() == 0);
    blocks.bins.remove(blocks.add(kUnit));
    CHECK(blocks.bins.best(1) == nullptr);
    CHECK(blocks.bins.largest() == 0);
}

TEST_CASE("a block that is too small is never the best, by however little") {
    const uint64_t bytes = GENERATE(1 * kUnit, 31 * kUnit, 32 * kUnit, 33 * kUnit, 64 * kUnit, 1000 * kUnit,
                                    uint64_t{1} << 30, (uint64_t{1} << 30) + 77 * kUnit);
    Blocks blocks;
    blocks.add(bytes);
    CHECK(blocks.best(bytes) == bytes);
    CHECK(blocks.bins.best(bytes + kUnit) == nullptr);
    CHECK(blocks.best(kUnit) == bytes);
    Block* const larger = blocks.add(2 * bytes);
    CHECK(blocks.best(bytes + kUnit) == 2 * bytes);
    CHECK(blocks.best(bytes) == bytes);
    blocks.bins.remove(larger);
    CHECK(blocks.bins.best(bytes + kUnit) == nullptr);
}

TEST_CASE("the best stays in its list until it is removed, and neighbours in a list are kept") {
    Blocks blocks;
    Block* const one = blocks.add(4 * kUnit);
    Block* const other = blocks.add(4 * kUnit);
    Block* const last = blocks.add(4 * kUnit);
    Block* const best = blocks.bins.best(4 * kUnit);
    CHECK(blocks.bins.best(4 * kUnit) == best);
    blocks.bins.remove(other);
    CHECK(other->next == nullptr);
    CHECK(other->previous == nullptr);
    std::vector<Block*> left;
    while (Block* block = blocks.bins.best(4 * kUnit)) {
        left.push_back(block);
        blocks.bins.remove(block);
    }
    std::sort(left.begin(), left.end());
    std::vector<Block*> expected{one, last};
    std::sort(expected.begin(), expected.end());
    CHECK(left == expected);
}

TEST_CASE("the largest is known to 3%") {
    Blocks blocks;
    for (const uint64_t bytes : {3 * kUnit, 100 * kUnit, 5000 * kUnit, uint64_t{1} << 35}) {
        blocks.add(bytes);
        CHECK(blocks.bins.largest() == bytes);
    }
    blocks.add(uint64_t{1} << 50);  // more than there are lists for
    blocks.add(uint64_t{1} << 51);
    CHECK(blocks.bins.largest() == uint64_t{1} << 51);
}

TEST_CASE("whatever comes and goes, the best is large enough, and none that is 4% smaller would have been") {
    std::mt19937_64 random(20261123);
    const bool alike = GENERATE(false, true);  // many of a list's sizes
    CAPTURE(alike);
    Blocks blocks;
    std::vector<Block*> free;
    for (int i = 0; i < 20'000; i++) {
        const uint64_t units = alike ? 100'000 + random() % 100'000 : 1 + (random() >> (random() % 40 + 24));
        const uint64_t bytes = units * kUnit;
        if (free.size() < 300 && random() % 2) {
            free.push_back(blocks.add(bytes));
        } else if (!free.empty()) {
            std::swap(free[random() % free.size()], free.back());
            blocks.bins.remove(free.back());
            free.pop_back();
        }
        uint64_t least = ~0ull, most = 0;
        for (const Block* block : free) {
            if (block->bytes >= bytes)
                least = std::min<uint64_t>(least, block->bytes);
            most = std::max<uint64_t>(most, block->bytes);
        }
        const uint64_t best = blocks.best(bytes), largest = blocks.bins.largest();
        REQUIRE((best == 0) == (least == ~0ull));
        if (best) {
            REQUIRE(best >= bytes);
            REQUIRE(best <= least + least / 28);
        }
        REQUIRE(largest <= most);
        REQUIRE(largest >= most - most / 28);
    }
}
