// SPDX-License-Identifier: Apache-2.0
// Address → entry, without a lock.
#include "policy/allocator/page_map.h"

#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/policy/rounds.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kGranule = 64 << 10, kLeaf = kGranule << 16;  // bytes that a part of the table has room for
using Map = PageMap<kGranule>;

// Too large for a stack, and for one each: a case keeps to addresses of its own.
Map& map() {
    static Map only;
    return only;
}

}  // namespace

TEST_CASE("where there is no memory for entries there is no room, nothing is found, and later there is room") {
    const uint64_t at = 3 * kLeaf;
    {
        const NoMemory none;
        CHECK_FALSE(map().cover(at, at + kGranule));
    }
    CHECK(map().at(at) == 0);
    REQUIRE(map().cover(at, at + kGranule));
    {
        const NoMemory none;
        CHECK(map().cover(at, at + kGranule));  // there is
        CHECK_FALSE(map().cover(at, at + kLeaf + 1));
    }
    map().set(at, 7);
    CHECK(map().at(at) == 7);
}

TEST_CASE("beyond the end there is no room, and nothing is found") {
    CHECK_FALSE(map().cover(Map::kEnd, Map::kEnd + kGranule));
    CHECK_FALSE(map().cover(Map::kEnd - kGranule, Map::kEnd + kGranule));
    CHECK(map().at(Map::kEnd) == 0);
    CHECK(map().at(~0ull) == 0);
    CHECK(map().cover(Map::kEnd - kGranule, Map::kEnd));
    map().set(Map::kEnd - 1, 9);
    CHECK(map().at(Map::kEnd - kGranule) == 9);
}

TEST_CASE("an entry is of its whole granule and of no other") {
    const uint64_t at = 5 * kLeaf;
    REQUIRE(map().cover(at - kGranule, at + 2 * kGranule));
    map().set(at + 100, 7);
    CHECK(map().at(at) == 7);
    CHECK(map().at(at + kGranule - 1) == 7);
    CHECK(map().at(at - 1) == 0);
    CHECK(map().at(at + kGranule) == 0);
    map().set(at, 0);
    CHECK(map().at(at) == 0);
}

TEST_CASE("a range has every granule that begins in it, also from one part of the table to the next") {
    const uint64_t end = 8 * kLeaf, begin = end - 2 * kGranule;
    REQUIRE(map().cover(begin - kGranule, end + 3 * kGranule));
    map().set_all(begin + 5, end + kGranule + 1, 4);
    CHECK(map().at(begin - 1) == 0);
    for (uint64_t at = begin; at < end + 2 * kGranule; at += kGranule)
        CHECK(map().at(at) == 4);
    CHECK(map().at(end + 2 * kGranule) == 0);
    map().set_all(begin, begin, 5);
    CHECK(map().at(begin) == 4);
}

TEST_CASE("an entry is cleared only where it is the expected one") {
    const uint64_t at = 10 * kLeaf;
    REQUIRE(map().cover(at, at + kGranule));
    map().set(at, 7);
    CHECK_FALSE(map().clear_if(at, 8));
    CHECK(map().at(at) == 7);
    CHECK(map().clear_if(at + 1, 7));
    CHECK(map().at(at) == 0);
    CHECK_FALSE(map().clear_if(at, 7));
}

TEST_CASE("threads that make room at once lose no entry, and one alone clears each") {
    constexpr unsigned kThreads = 4, kEntries = 200;
    const uint64_t begin = 20 * kLeaf;
    std::atomic<unsigned> cleared{0}, wrong{0};
    on_threads(kThreads, [&](unsigned t) {
        for (uint64_t i = 0; i < kEntries; i++) {
            const uint64_t at = begin + i * kLeaf / 8 + t * kGranule;
            if (!map().cover(at, at + kGranule))
                wrong++;
            map().set(at, t + 1);
            if (map().at(at) != t + 1)
                wrong++;
        }
    });
    on_threads(kThreads, [&](unsigned) {
        for (uint64_t i = 0; i < kEntries * kThreads; i++)
            cleared += map().clear_if(begin + i / kThreads * kLeaf / 8 + i % kThreads * kGranule, i % kThreads + 1);
    });
    CHECK(wrong == 0);
    CHECK(cleared == kThreads * kEntries);
}
