// SPDX-License-Identifier: Apache-2.0
// Huge blocks: a segment for each, and how they are exchanged.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {

using Freed = TestAllocator::Freed;

TEST_CASE("a huge block has a segment of its size to itself, which is exchanged when its size changes") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options);
    uint64_t live = 0;
    for (uint64_t size = 100 * kMiB; size <= 400 * kMiB; size += 30 * kMiB) {
        const uint64_t huge = a.allocate(size);
        // The small block outlives the huge one and therefore lies in another segment.
        const uint64_t small = a.allocate(kMiB);
        REQUIRE((huge && small));
        CHECK(a.find(huge).segment->bytes < size + GrowthPolicy::kGranule);
        CHECK(a.find(small).segment != a.find(huge).segment);
        live = std::max<uint64_t>(live, a.allocator.statistics().allocated.current);
        REQUIRE(a.free(huge) == Freed::done);
    }
    CHECK(a.memory.peak <= live / 100 * 110);
    CHECK(a.memory.returns > 0);
}

TEST_CASE("a training whose tensors follow a length that varies holds a fifth more than is live, at most") {
    Allocator a;
    std::mt19937_64 random(1);
    std::vector<uint64_t> kept, gradients, last;
    uint64_t live = 0;
    const auto take = [&](std::vector<uint64_t>& list, uint64_t bytes) {
        list.push_back(a.allocate(bytes));
        REQUIRE(list.back());
        live = std::max<uint64_t>(live, a.allocator.statistics().allocated.current);
    };
    const auto free_all = [&](std::vector<uint64_t>& list) {
        for (; !list.empty(); list.pop_back())
            REQUIRE(a.free(list.back()) == Freed::done);
    };
    for (int i = 0; i < 60; i++)
        take(kept, (i % 5 + 1) * 3 * kMiB);
    for (int step = 0; step < 40; step++) {
        const uint64_t length = 64 + random() % 449;
        std::vector<uint64_t> activations, scores, now;
        for (int layer = 0; layer < 48; layer++)
            take(activations, length * 16 * kKiB);
        take(now, length * 800 * kKiB);  // scores, which are held until the next step has its own
        take(scores, length * 800 * kKiB);
        free_all(last);
        last = now;
        for (int i = 0; i < 2; i++)
            take(scores, length * 1600 * kKiB);
        free_all(gradients);
        for (int i = 0; i < 3; i++)
            take(gradients, 147 * kMiB);
        free_all(scores);
        free_all(activations);
    }
    INFO(a.memory.peak / kMiB << " MiB for " << live / kMiB);
    CHECK(a.memory.peak <= live / 100 * 120);
    free_all(last);
    free_all(gradients);
    free_all(kept);
}

TEST_CASE("sizes that never settle are exchanged a few times, and then live with what there is") {
    Allocator a;
    const auto round = [&] {
        for (const uint64_t size : {100 * kMiB, 190 * kMiB})
            REQUIRE(a.free(a.allocate(size)) == Freed::done);
    };
    for (int i = 0; i < 20; i++)
        round();
    const unsigned takes = a.memory.takes;
    CHECK(takes > 2);
    for (int i = 0; i < 100; i++)
        round();
    CHECK(a.memory.takes == takes);
    CHECK(a.memory.peak <= 190 * kMiB);
}

TEST_CASE("at the limit an idle huge segment makes room for smaller blocks, or they lie in it") {
    Allocator a({}, 210 * kMiB);
    REQUIRE(a.allocate(kMiB));
    REQUIRE(a.free(a.allocate(200 * kMiB)) == Freed::done);
    a.memory.capturing = GENERATE(true, false);  // nothing is given back then
    for (int i = 0; i < 15; i++)
        REQUIRE(a.allocate(10 * kMiB));
    CHECK(a.memory.returns == !a.memory.capturing);
    CHECK(a.allocator.statistics().retries == !a.memory.capturing);
    CHECK(a.memory.peak <= 210 * kMiB);
}

TEST_CASE("while a stream is captured nothing is exchanged: the driver's free would wait for the GPU") {
    Allocator a;
    REQUIRE(a.free(a.allocate(100 * kMiB)) == Freed::done);
    a.memory.capturing = true;
    REQUIRE(a.allocate(300 * kMiB));
    CHECK(a.memory.returns == 0);
    a.memory.capturing = false;
    REQUIRE(a.allocate(120 * kMiB));
    CHECK(a.memory.returns == 1);
}

}  // namespace cuslice
