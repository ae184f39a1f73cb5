// SPDX-License-Identifier: Apache-2.0
#include "fake/spec/keys.h"

#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

uint64_t size(const std::string& text) {
    uint64_t bytes = 0;
    std::string why;
    INFO(text);
    REQUIRE(parse_size(text, bytes, why));
    return bytes;
}

std::string refused(const std::string& text) {
    uint64_t bytes = 0;
    std::string why;
    INFO(text);
    REQUIRE_FALSE(parse_size(text, bytes, why));
    return why;
}

}  // namespace

TEST_CASE("sizes have a unit, powers of 1024 or 1000") {
    CHECK(size("2002MiB") == 2002ULL << 20);
    CHECK(size("80 GB") == 80000000000ULL);
    CHECK(size("1.5G") == 3ULL << 29);
    CHECK(size("40536.1875MiB") == 42505273344ULL);
    CHECK(size("4K") == 4096);
    CHECK(size("7KB") == 7000);
    CHECK(size("2TiB") == 2ULL << 40);
    CHECK(size("512B") == 512);
    CHECK(size("0") == 0);
}

TEST_CASE("what is no size says what would be") {
    CHECK(refused("1024") == "1024 bytes? A size needs its unit: did you mean \"1024MiB\"?");
    CHECK(refused("1024mb").find("\"mb\" is no unit") == 0);
    CHECK(refused("-1GiB").find("is not a size") != std::string::npos);
    CHECK(refused("").find("is not a size") != std::string::npos);
    CHECK(refused("9999999TiB").find("more than any GPU has") != std::string::npos);
}

TEST_CASE("every key is found by its name and explained") {
    for (const Key& key : keys()) {
        CHECK(find_key(key.name) == &key);
        CHECK(std::string(key.meaning).size() > 5);
    }
    CHECK(find_key("memroy") == nullptr);
}
