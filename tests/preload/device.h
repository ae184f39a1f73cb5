// SPDX-License-Identifier: Apache-2.0
// A guest's first calls: what a test begins with that is about later ones.
#pragma once

#include "tests/catch.h"
#include "tests/preload/guest.h"

namespace cuslice::tests {

/// cuInit, and device 0's primary context.
inline void retain_device(Guest& guest) {
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(guest.code("retain 0") == kSuccess);
}

/// Device 0's primary context, made current: for a guest that has called cuInit, as Scene's has.
inline void enter_device(Guest& guest) {
    REQUIRE(guest.code("retain 0") == kSuccess);
    REQUIRE(guest.code("current 0") == kSuccess);
}

/// cuInit, and device 0's primary context, made current.
inline void use_device(Guest& guest) {
    retain_device(guest);
    REQUIRE(guest.code("current 0") == kSuccess);
}

/// The same without an assertion: the first result that isn't kSuccess, if there is one.
inline int try_device(Guest& guest) {
    for (const char* line : {"init", "retain 0", "current 0"})
        if (const int result = guest.code(line); result != kSuccess)
            return result;
    return kSuccess;
}

}  // namespace cuslice::tests
