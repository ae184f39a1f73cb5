// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/size_class.h"

#include "tests/catch.h"

using cuslice::SizeClass;

TEST_CASE("a size's class is the smallest that holds it, and wastes a fifth at most") {
    for (uint64_t bytes = 1; bytes <= SizeClass::kMax; bytes++) {
        const unsigned size_class = SizeClass::of(bytes);
        REQUIRE(size_class < SizeClass::kCount);
        const uint64_t room = SizeClass::bytes(size_class);
        REQUIRE(room >= bytes);
        if (size_class > 0)
            REQUIRE(SizeClass::bytes(size_class - 1) < bytes);
        // Beyond the last unit, which drivers round to as well.
        if (room - bytes >= SizeClass::kUnit)
            REQUIRE((room - bytes) * 5 <= room + 5 * SizeClass::kUnit);
    }
    CHECK(SizeClass::bytes(SizeClass::kCount - 1) == SizeClass::kMax);
}

TEST_CASE("a span is whole granules and holds as many blocks as fit, at least eight") {
    for (unsigned c = 0; c < SizeClass::kCount; c++) {
        CAPTURE(c);
        CHECK(SizeClass::span_bytes(c) % SizeClass::kGranule == 0);
        CHECK(SizeClass::blocks(c) >= SizeClass::kMinBlocks);
        const uint64_t used = SizeClass::blocks(c) * SizeClass::bytes(c);
        CHECK(used <= SizeClass::span_bytes(c));
        CHECK(SizeClass::span_bytes(c) - used < SizeClass::bytes(c));
    }
}

TEST_CASE("larger sizes are whole units, and what no driver has stays as it is") {
    CHECK(SizeClass::rounded(SizeClass::kMax + 1) == SizeClass::kMax + SizeClass::kUnit);
    CHECK(SizeClass::rounded(SizeClass::kMax + SizeClass::kUnit) == SizeClass::kMax + SizeClass::kUnit);
    CHECK(SizeClass::rounded(~0ull - SizeClass::kUnit) == ~0ull - SizeClass::kUnit + 1);
    CHECK(SizeClass::rounded(~0ull - 10) == ~0ull - 10);
    CHECK(SizeClass::rounded(~0ull) == ~0ull);
}
