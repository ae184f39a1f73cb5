// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/job_id.h"

#include "tests/catch.h"

namespace cuslice::lease {

TEST_CASE("a job's number is made of its name alone, and is the same in every version") {
    // FNV-1a's own test vectors.
    STATIC_REQUIRE(job_id("a") == 0xaf63dc4c8601ec8c);
    STATIC_REQUIRE(job_id("foobar") == 0x85944171f73967e8);
    CHECK(job_id("4711-12") != job_id("4711-13"));
}

TEST_CASE("no name has the number of nobody") {
    // FNV-1a of these 8 bytes is 0.
    constexpr std::string_view kNothing("\xd5\x6b\xb9\x53\x42\x87\x08\x36");
    STATIC_REQUIRE(hash_of(kNothing) == 0);
    CHECK(job_id(kNothing) != 0);
    CHECK(job_id("") != 0);
}

}  // namespace cuslice::lease
