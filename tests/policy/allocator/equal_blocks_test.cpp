// SPDX-License-Identifier: Apache-2.0
// Blocks of one size that fill a slice: they get what the driver alone would give them, less 3% at most.
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {

namespace {

// A driver hands out whole granules.
uint64_t of_the_driver(uint64_t limit, uint64_t bytes) { return limit / GrowthPolicy::least(bytes); }

uint64_t fill(Allocator& a, uint64_t bytes) {
    uint64_t blocks = 0;
    while (a.allocate(bytes))
        blocks++;
    return blocks;
}

constexpr TestAllocator::Options kPreallocates{TestAllocator::Reuse::strict, true};

}  // namespace

TEST_CASE("blocks of one size fill a slice, whatever their size and that of the slice") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred, kPreallocates);
    const uint64_t limit = GENERATE(1440, 1920, 5000, 7000, 8064, 15000) * kMiB;
    for (const uint64_t kib : {1536, 3072, 5120, 7468, 10240, 17408, 24576, 32768, 49152, 64512, 65536, 102400, 133120,
                               204800, 340992, 512000, 655360, 1024000}) {
        const uint64_t bytes = kib * kKiB;
        if (2 * bytes > limit)
            continue;
        Allocator a(options, limit);
        if (options.preallocate)
            REQUIRE(a.allocator.top_up(&a.denied));
        const uint64_t blocks = fill(a, bytes);
        INFO(blocks << " blocks of " << kib << " KiB in " << limit / kMiB << " MiB");
        CHECK(100 * blocks >= 97 * of_the_driver(limit, bytes));
        CHECK(a.memory.peak <= limit);
    }
}

TEST_CASE("what is preallocated is cut anew for large blocks, and what is in use stays where it is") {
    Allocator a(kPreallocates, 7000 * kMiB);
    REQUIRE(a.allocator.top_up(&a.denied));
    const uint64_t small = a.allocate(kMiB);
    const Segment* segment = a.find(small).segment;
    CHECK(fill(a, 1000 * kMiB) == 6);
    CHECK(a.find(small).segment == segment);
    CHECK(a.allocator.top_up(&a.denied));  // what the last one was refused for is idle
    CHECK(a.memory.held == 7000 * kMiB);
}

TEST_CASE("what is preallocated isn't cut anew for ever, nor while a stream is captured") {
    Allocator a(kPreallocates, 7000 * kMiB);
    REQUIRE(a.allocator.top_up(&a.denied));
    SECTION("each size wants it otherwise") {
        for (int i = 0; i < 1000; i++) {
            const uint64_t bytes = i % 2 ? 1000 * kMiB : 1300 * kMiB;
            const uint64_t block = a.allocate(bytes);
            REQUIRE(block);
            a.free(block);
        }
        CHECK(a.memory.returns < 100);
    }
    SECTION("a capture") {
        a.memory.capturing = true;
        a.memory.limit += 100 * kMiB;
        const unsigned takes = a.memory.takes;
        CHECK(a.allocate(1000 * kMiB));
        CHECK(a.memory.returns == 0);
        CHECK(a.memory.takes == takes);
    }
    CHECK(a.memory.held == 7000 * kMiB);
}

TEST_CASE("a driver that has less than was preallocated gives what it has when that is cut anew") {
    Allocator a(kPreallocates, 7000 * kMiB);
    REQUIRE(a.allocator.top_up(&a.denied));
    a.memory.physical = 6000 * kMiB;  // as if somebody else had taken the rest meanwhile
    CHECK(fill(a, 1000 * kMiB) >= 5);
    CHECK(a.memory.held <= 6000 * kMiB);
}

}  // namespace cuslice
