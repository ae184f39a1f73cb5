// SPDX-License-Identifier: Apache-2.0
#include "policy/base/out_parameter.h"

#include "tests/catch.h"

using cuslice::OutParameter;

TEST_CASE("a place is as it was until what was made is kept") {
    int place = 77;
    {
        OutParameter<int> made(&place);
        REQUIRE(made.place());
        CHECK(made.place() != &place);
        *made.place() = 5;
        CHECK(*made == 5);
    }
    CHECK(place == 77);
    OutParameter<int> made(&place);
    CHECK(*made == 0);
    *made.place() = 6;
    CHECK(place == 77);
    made.keep();
    CHECK(place == 6);
}

TEST_CASE("who has given no place gets none, and nothing is written") {
    OutParameter<int> made(nullptr);
    CHECK(made.place() == nullptr);
    made.keep();
    CHECK(*made == 0);
}
