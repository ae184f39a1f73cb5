// SPDX-License-Identifier: Apache-2.0
// A GPU's memory as a program is shown it.
#include "virtual_gpu/gpu/memory_view.h"

#include "tests/virtual_gpu/gpu/sliced_gpu.h"

using namespace cuslice;
using namespace cuslice::tests;

TEST_CASE("what a program is shown is the slice, what its caches keep for it, and no more than there is") {
    Slice growth = slice(kGiB, "limit");
    growth.allocator = AllocatorMode::growth;
    Gpu gpu(growth);
    gpu.take(100 * kMiB);
    the_caches.kept = 30 * kMiB;
    CHECK(memory_view(*gpu.gpu, 2 * kGiB).free == kGiB - kHeadroom - 70 * kMiB);
    CHECK(memory_view(*gpu.gpu, 2 * kGiB).total == kGiB);
    CHECK(memory_view(*gpu.gpu, kMiB).free == 30 * kMiB);  // in whole segments
    Gpu direct(slice(kGiB, "limit"));
    the_caches.kept = 30 * kMiB;
    CHECK(memory_view(*direct.gpu, 2 * kGiB).free == kGiB - kHeadroom);
}

TEST_CASE("a partition is shown no more than the whole GPU has left") {
    Parts parts(kGiB, 1200 * kMiB);
    parts.one.take(800 * kMiB);
    CHECK(memory_view(*parts.other.gpu, 2 * kGiB).free == 400 * kMiB - kHeadroom);
    CHECK(memory_view(*parts.other.gpu, 2 * kGiB).total == kGiB);
    // With caches, what these keep is charged to the whole GPU, too.
    Slice growth = slice(kGiB, "parts");
    growth.allocator = AllocatorMode::growth;
    Gpu one(split_gpu(slice(1200 * kMiB, "whole"), 2 * kGiB), growth, 0), other(one.whole, growth, 1);
    one.take(800 * kMiB);
    the_caches.kept = 100 * kMiB;
    CHECK(memory_view(*one.gpu, 2 * kGiB).free == kGiB - kHeadroom - 700 * kMiB);
    other.take(2 * kMiB);
    CHECK(memory_view(*one.gpu, 2 * kGiB).free == kGiB - kHeadroom - 700 * kMiB);
    other.take(300 * kMiB);
    CHECK(memory_view(*one.gpu, 2 * kGiB).free == (1200 - 700 - 302) * kMiB - kHeadroom);
}

TEST_CASE("before the first context the limit to come is the limit, where no group has one") {
    Gpu gpu(slice(kGiB, "limit"));
    CHECK(limit_to_come(*gpu.gpu) == kGiB);
}
