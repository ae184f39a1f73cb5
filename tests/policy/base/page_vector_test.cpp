// SPDX-License-Identifier: Apache-2.0
#include "policy/base/page_vector.h"

#include <cstdint>

#include "tests/catch.h"

namespace cuslice {
namespace {

TEST_CASE("a page vector grows, keeps its values, and moves the last one into a hole") {
    PageVector<uint64_t> values;
    CHECK(values.begin() == values.end());
    for (uint64_t i = 0; i < 10'000; ++i)
        REQUIRE(values.push_back(i * i));
    REQUIRE(values.size() == 10'000);
    for (uint64_t i = 0; i < 10'000; ++i)
        REQUIRE(values[i] == i * i);
    values.remove_at(0);
    CHECK(values[0] == 9'999ull * 9'999);
    CHECK(values.size() == 9'999);
    values.remove_at(9'998);
    CHECK(values.size() == 9'998);
    values.release();
    CHECK(values.size() == 0);
    REQUIRE(values.push_back(1));
    CHECK(values[0] == 1);
    values.release();
}

TEST_CASE("a value larger than the first page fits too") {
    struct Large {
        char bytes[6000];
    };
    PageVector<Large> values;
    Large large{};
    large.bytes[5999] = 'x';
    REQUIRE(values.push_back(large));
    REQUIRE(values.push_back(large));
    CHECK(values[1].bytes[5999] == 'x');
    values.release();
}

}  // namespace
}  // namespace cuslice
