// SPDX-License-Identifier: Apache-2.0
// Bytes that a limit leaves to a program, before there is a context.
#include "policy/frameworks/slice_room.h"

#include "tests/catch.h"

namespace cuslice {

TEST_CASE("a part's share of a context is as large as its share of the GPU's memory, and all where none is split") {
    constexpr uint64_t kContext = 300 << 20;
    CHECK(share_of_context(kContext, 1, 4) == kContext / 4);
    CHECK(share_of_context(kContext, 3, 4) == kContext / 4 * 3);
    CHECK(share_of_context(kContext, 7, 7) == kContext);
    CHECK(share_of_context(kContext, 0, 7) == 0);
    CHECK(share_of_context(kContext, 0, 0) == kContext);
}

}  // namespace cuslice
