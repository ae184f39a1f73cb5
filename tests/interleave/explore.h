// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/interleave/schedule.h"

namespace cuslice::tests {

/// Runs of each situation: CUSLICE_TEST_INTERLEAVINGS, or so many that all take seconds.
inline uint64_t runs_of_each() {
    const char* const count = std::getenv("CUSLICE_TEST_INTERLEAVINGS");
    return count ? std::stoull(count) : 5000;
}

/// Runs two or three functions that Situation::bodies() has, in many orders, each time on a new Situation, which then
/// checks itself (`check`).
template <typename Situation>
void explore() {
    Schedule schedule(3);
    uint64_t steps = 0;
    const uint64_t runs = runs_of_each();
    for (uint64_t number = 0; number < runs; number++) {
        Situation situation;
        const std::vector<Schedule::Body> bodies = situation.bodies();
        schedule.run(number, bodies);
        steps += schedule.steps();
        INFO("run " << number);
        situation.check();
    }
    CHECK(steps > 3 * runs);  // the code is built for it
}

}  // namespace cuslice::tests
