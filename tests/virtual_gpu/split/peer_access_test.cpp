// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/peer_access.h"

#include "tests/catch.h"
#include "tests/no_memory.h"

using cuslice::PeerAccess;

namespace {

CUcontext real(uintptr_t number) { return reinterpret_cast<CUcontext>(number << 4); }

}  // namespace

TEST_CASE("the driver is told of peer access once for each pair of real contexts, and of the end of the last one") {
    PeerAccess access;
    bool first = false, last = true;
    CHECK(access.allow({1, 2, real(1), real(2)}, &first));
    CHECK(first);
    CHECK(access.allow({3, 2, real(1), real(2)}, &first));
    CHECK_FALSE(first);
    CHECK(access.allow({2, 1, real(2), real(1)}, &first));  // the other way is another pair
    CHECK(first);
    CHECK_FALSE(access.allow({1, 2, real(1), real(2)}, &first));  // allowed already
    CHECK(access.forbid(1, 2, &last));
    CHECK_FALSE(last);
    CHECK_FALSE(access.forbid(1, 2, &last));
    CHECK(access.forbid(3, 2, &last));
    CHECK(last);
    CHECK(access.forbid(2, 1, &last));
    CHECK(last);
}

TEST_CASE("a context's end takes peer access from it and to it, and no other") {
    PeerAccess access;
    bool first = false, last = false;
    REQUIRE(access.allow({1, 2, real(1), real(2)}, &first));
    REQUIRE(access.allow({2, 3, real(2), real(3)}, &first));
    REQUIRE(access.allow({1, 3, real(1), real(3)}, &first));
    access.ended(2);
    CHECK_FALSE(access.forbid(1, 2, &last));
    CHECK_FALSE(access.forbid(2, 3, &last));
    CHECK(access.forbid(1, 3, &last));
}

TEST_CASE("peer access that there is no memory to note is not allowed") {
    PeerAccess access;
    bool first = false, last = false;
    {
        const cuslice::tests::NoMemory none;
        CHECK_FALSE(access.allow({1, 2, real(1), real(2)}, &first));
    }
    CHECK_FALSE(access.forbid(1, 2, &last));
    CHECK(access.allow({1, 2, real(1), real(2)}, &first));
    CHECK(first);
}
