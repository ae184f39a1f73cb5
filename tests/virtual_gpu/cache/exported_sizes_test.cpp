// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/exported_sizes.h"

#include <cstdint>

#include "tests/catch.h"

using cuslice::ExportedSizes;

TEST_CASE("a size that was exported is known, and so is what is rounded to the same, but no other") {
    ExportedSizes sizes;
    for (const uint64_t bytes : {1ull, 512ull, 4096ull, 1ull << 20, 1ull << 40})
        CHECK_FALSE(sizes.has(bytes));
    sizes.add(5000);
    CHECK(sizes.has(5000));
    CHECK(sizes.has(5120));  // one step is 4097 to 5120
    CHECK(sizes.has(4097));
    CHECK_FALSE(sizes.has(4096));
    CHECK_FALSE(sizes.has(5121));
    CHECK_FALSE(sizes.has(10000));
    CHECK_FALSE(sizes.has(1 << 20));
}

TEST_CASE("the smallest exported sizes are one, and so are all of a mebibyte and more") {
    ExportedSizes small, large;
    small.add(1);
    CHECK(small.has(512));
    CHECK_FALSE(small.has(513));
    large.add(1 << 20);
    CHECK(large.has(3ull << 30));
    CHECK_FALSE(large.has((1 << 20) - 1));
}
