// SPDX-License-Identifier: Apache-2.0
// Charges of a GPU, and what a refusal leaves of them: a GPU by itself, and two partitions of one.
#include "virtual_gpu/gpu/virtual_gpu.h"

#include <cstdint>
#include <vector>

#include "tests/virtual_gpu/gpu/sliced_gpu.h"

using namespace cuslice;
using namespace cuslice::tests;

TEST_CASE("a GPU's slice is had to its last unit, less headroom, and a refusal charges nothing") {
    Gpu gpu(slice(kGiB, "limit"));
    CHECK(gpu.gpu->room() == kGiB - kHeadroom);
    gpu.take(kGiB - kHeadroom - kUnit);
    const LimitError why = gpu.refused(2 * kUnit);
    CHECK(why.requested == 2 * kUnit);
    CHECK(why.used == kGiB - kHeadroom - kUnit);
    CHECK(why.ceiling == kGiB - kHeadroom);
    CHECK(why.limit == kGiB);
    CHECK(why.of == LimitOf::process);
    CHECK(gpu.origin_of(why.of, why.limit) == "limit");
    CHECK(gpu.gpu->room() == kUnit);
    gpu.take(kUnit);
    CHECK(gpu.gpu->room() == 0);
    gpu.refused(1);
    gpu.refused(~0ull);
}

TEST_CASE("a limit is never more than what the GPU has") {
    Gpu gpu(slice(16 * kGiB, "limit"));
    CHECK(gpu.gpu->limit() == 2 * kGiB);
    CHECK(gpu.refused(2 * kGiB).limit == 2 * kGiB);
}

TEST_CASE("what is charged as a fact may be over the limit, which is then seen and said") {
    Gpu gpu(slice(kGiB, "limit"));
    gpu.take(kGiB - kHeadroom);
    CHECK(gpu.gpu->within_limit(nullptr));
    gpu.gpu->budget().adjust(0, kHeadroom);
    LimitError why;
    CHECK(gpu.gpu->within_limit(&why));  // the headroom is there for it
    gpu.gpu->budget().adjust(0, kUnit);
    REQUIRE_FALSE(gpu.gpu->within_limit(&why));
    CHECK(why.used == kGiB + kUnit);
    CHECK(why.limit == kGiB);
    CHECK(gpu.gpu->room() == 0);
    gpu.refused(0);
}

TEST_CASE("two parts that are more than their GPU's slice together get no more than that") {
    Parts parts(kGiB, 1200 * kMiB);
    parts.one.take(800 * kMiB);
    CHECK(parts.other.gpu->room() == 400 * kMiB - kHeadroom);
    const LimitError why = parts.other.refused(400 * kMiB - kHeadroom + kUnit);
    CHECK(why.requested == 400 * kMiB - kHeadroom + kUnit);
    CHECK(why.used == 800 * kMiB);
    CHECK(why.ceiling == 1200 * kMiB - kHeadroom);
    CHECK(why.limit == 1200 * kMiB);
    CHECK(why.of == LimitOf::whole_gpu);
    CHECK(parts.other.origin_of(why.of, why.limit) == "whole");
    CHECK(parts.other.origin_of(LimitOf::process, 0) == "parts");
    // A refused part refuses no less than before, and the other one no more.
    parts.other.take(400 * kMiB - kHeadroom);
    CHECK(parts.other.used() == 400 * kMiB - kHeadroom);
    CHECK(parts.one.refused(kUnit).of == LimitOf::whole_gpu);
    parts.other.gpu->budget().release(kMiB);
    parts.one.take(kMiB);
}

TEST_CASE("a part's own limit is refused as its own, and charges neither it nor the whole GPU") {
    Parts parts(kGiB, 1200 * kMiB);
    const LimitError why = parts.one.refused(kGiB - kHeadroom + kUnit);
    CHECK(why.of == LimitOf::process);
    CHECK(why.limit == kGiB);
    CHECK(parts.other.gpu->room() == kGiB - kHeadroom);
}

TEST_CASE("two parts that fit their GPU's slice together don't take from each other") {
    Parts parts(600 * kMiB, 1200 * kMiB);
    parts.one.take(600 * kMiB - kHeadroom);
    CHECK(parts.other.gpu->room() == 600 * kMiB - kHeadroom);
    parts.other.take(600 * kMiB - kHeadroom);
    CHECK(parts.other.refused(kUnit).of == LimitOf::process);
}

TEST_CASE("before a GPU with caches refuses it has them give memory back, and one without them doesn't ask") {
    Slice growth = slice(kGiB, "limit");
    growth.allocator = AllocatorMode::growth;
    Gpu gpu(growth);
    gpu.take(kGiB - kHeadroom);
    the_caches.kept = 100 * kMiB;
    const unsigned looked = looked_for_ended;
    gpu.take(60 * kMiB);
    CHECK(the_caches.asked == std::vector<uint64_t>{60 * kMiB});
    CHECK(looked_for_ended == looked + 1);
    CHECK(gpu.used() == kGiB - kHeadroom);
    LimitError why;
    CHECK_FALSE(gpu.gpu->reserve(60 * kMiB, &why));
    CHECK(why.of == LimitOf::process);
    CHECK(why.limit == kGiB);
    CHECK(gpu.used() == kGiB - kHeadroom - 40 * kMiB);  // what was given back stays so
    Gpu direct(slice(kGiB, "limit"));
    the_caches.kept = kGiB;
    direct.refused(kGiB);
    CHECK(the_caches.asked.empty());
}

TEST_CASE("a cache that needs a segment is asked for none of its own memory") {
    Slice growth = slice(kGiB, "limit");
    growth.allocator = AllocatorMode::growth;
    Gpu gpu(growth);
    gpu.take(kGiB - kHeadroom);
    char place = 0;
    const auto* cache = reinterpret_cast<const ContextCache*>(&place);
    LimitError why;
    CHECK_FALSE(gpu.gpu->reserve_segment(2 * kMiB, *cache, &why));
    CHECK(why.limit == kGiB);
    CHECK(the_caches.except == cache);
    CHECK(gpu.used() == kGiB - kHeadroom);
    CHECK(gpu.gpu->budget().settled(gpu.gpu->budget().snapshot()));
    the_caches.kept = 2 * kMiB;
    CHECK(gpu.gpu->reserve_segment(2 * kMiB, *cache, &why));
    gpu.gpu->budget().commit();
    CHECK(gpu.used() == kGiB - kHeadroom);
}
