// SPDX-License-Identifier: Apache-2.0
// Range of memory that a copy or memset touches, from its first byte to its last.
#include "shim/driver/box.h"

#include "tests/catch.h"

using namespace cuslice;

namespace {

constexpr uint64_t kAt = 4096, kMost = ~0ull;

bool is(const ByteRange& range, uint64_t address, uint64_t bytes) {
    CAPTURE(range.address, range.bytes);
    CHECK(range.address == address);
    CHECK(range.bytes == bytes);
    return range.address == address && range.bytes == bytes;
}

}  // namespace

TEST_CASE("a box without a width, rows or layers is empty, whatever else it is") {
    CHECK(Box{0, 2, 2, 10, 10}.empty());
    CHECK(Box{5, 0, 2, 10, 10}.empty());
    CHECK(Box{5, 2, 0, 10, 10}.empty());
    CHECK_FALSE(Box{1, 1, 1, 0, 0}.empty());
    CHECK(is(range_of(kAt, Box{0, kMost, kMost, kMost, kMost}), kAt, 0));
    CHECK(is(range_of(kAt, kMost, kMost, kMost, Box{5, 0, 2, 10, 10}), kAt, 0));
}

TEST_CASE("a range goes from a box's first byte to its last") {
    CHECK(is(range_of(kAt, Box{5, 1, 1, 100, 10}), kAt, 5));
    CHECK(is(range_of(kAt, Box{5, 3, 1, 100, 10}), kAt, 205));
    CHECK(is(range_of(kAt, Box{5, 3, 2, 100, 10}), kAt, 1205));
    CHECK(is(range_of(kAt, Box{5, 1, 3, 100, 10}), kAt, 2005));
    CHECK(is(range_of(kAt, Box{5, 3, 1, 0, 0}), kAt, 5));
}

TEST_CASE("a box at a place begins after the rows and layers before it") {
    CHECK(is(range_of(kAt, 7, 0, 0, Box{5, 1, 1, 100, 10}), kAt + 7, 5));
    CHECK(is(range_of(kAt, 7, 2, 0, Box{5, 1, 1, 100, 10}), kAt + 207, 5));
    CHECK(is(range_of(kAt, 7, 2, 3, Box{5, 1, 1, 100, 10}), kAt + 3207, 5));
    CHECK(is(range_of(kAt, 7, 2, 3, Box{5, 4, 2, 100, 10}), kAt + 3207, 1305));
}

TEST_CASE("rows without a pitch touch each other, and so do layers without a height") {
    // Rows of 12 bytes, the place included, in layers of 5.
    CHECK(is(range_of(kAt, 7, 0, 0, Box{5, 3, 1, 0, 0}), kAt + 7, 29));
    CHECK(is(range_of(kAt, 7, 2, 0, Box{5, 3, 1, 0, 0}), kAt + 31, 29));
    CHECK(is(range_of(kAt, 7, 2, 1, Box{5, 3, 1, 0, 0}), kAt + 91, 29));
    CHECK(is(range_of(kAt, 0, 0, 0, Box{5, 3, 2, 0, 0}), kAt, 30));
    CHECK(is(range_of(kAt, 0, 2, 0, Box{5, 3, 2, 100, 0}), kAt + 200, 705));
}

TEST_CASE("what no number holds is past the end of everything") {
    const uint64_t half = uint64_t{1} << 63;
    CHECK(is(range_of(kAt, Box{5, 3, 1, half, 0}), kAt, kMost));
    CHECK(is(range_of(kAt, Box{5, 1, 3, 1, half}), kAt, kMost));
    CHECK(is(range_of(kAt, Box{5, half, 3, 1, half}), kAt, kMost));
    CHECK(is(range_of(kAt, Box{5, 2, 2, 1, kMost}), kAt, kMost));
    CHECK(is(range_of(kAt, Box{kMost, 2, 1, 100, 0}), kAt, kMost));
    CHECK(is(range_of(kAt, Box{kMost - 100, 2, 1, 100, 0}), kAt, kMost));
    CHECK(is(range_of(kAt, Box{kMost - 101, 2, 1, 100, 0}), kAt, kMost - 1));
    // Nor is there such a place.
    CHECK(is(range_of(kAt, 0, half, 0, Box{5, 1, 1, 100, 10}), kAt, kMost));
    CHECK(is(range_of(kAt, 0, 0, half, Box{5, 1, 1, 100, 10}), kAt, kMost));
    CHECK(is(range_of(kAt, 99, 1, 0, Box{5, 1, 1, kMost - 50, 10}), kAt, kMost));
    CHECK(is(range_of(kAt, kMost - kAt + 1, 0, 0, Box{5, 1, 1, 100, 10}), kAt, kMost));
    CHECK(is(range_of(kAt, kMost - kAt, 0, 0, Box{5, 1, 1, 100, 10}), kMost, 5));
}

TEST_CASE("a memset of rows fills elements of some bytes") {
    CHECK(is(range_of_rows(kAt, 100, 5, 4, 3), kAt, 220));
    CHECK(is(range_of_rows(kAt, 100, 5, 1, 1), kAt, 5));
    CHECK(is(range_of_rows(kAt, 100, 0, 4, 3), kAt, 0));
    CHECK(is(range_of_rows(kAt, 100, 5, 4, 0), kAt, 0));
    CHECK(is(range_of_rows(kAt, 100, uint64_t{1} << 62, 4, 1), kAt, kMost));
    CHECK(is(range_of_rows(kAt, 100, uint64_t{1} << 61, 4, 1), kAt, uint64_t{1} << 63));
}
