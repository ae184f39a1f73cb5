// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/path_buffer.h"

#include <string>

#include "tests/catch.h"

using cuslice::PathBuffer;

TEST_CASE("a path that doesn't fit is refused, and the one before it stays") {
    PathBuffer path;
    REQUIRE(path.join("/usr/lib", "/", "libcuda.so.1"));
    const std::string longest(PathBuffer::kSize - 1, 'x'), too_long(PathBuffer::kSize, 'x');
    CHECK_FALSE(path.set(too_long.c_str()));
    CHECK_FALSE(path.join("/opt", longest.c_str(), ""));
    CHECK_FALSE(path.join("/opt/cuda", "/lib64", longest.c_str()));
    CHECK(std::string(path.text()) == "/usr/lib/libcuda.so.1");
    CHECK(path.set(longest.c_str()));
    CHECK(path.text() == longest);
    CHECK(path.join(longest.c_str() + 3, "a", "bc"));
    CHECK(std::string(path.text()) == longest.substr(3) + "abc");
    CHECK_FALSE(path.join(longest.c_str() + 3, "a", "bcd"));
}

TEST_CASE("a path is put together from what there is of it") {
    PathBuffer path;
    CHECK(path.set(""));
    CHECK(std::string(path.text()).empty());
    CHECK(path.join("", "b", ""));
    CHECK(std::string(path.text()) == "b");
    CHECK(path.join("a", "", "c"));
    CHECK(std::string(path.text()) == "ac");
}
