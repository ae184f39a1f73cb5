// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/bench/figure.h"
#include "tests/bench/two_drivers.h"

namespace cuslice::bench {

// A function that is not hooked, by symbol and by look-up, and cuMemGetInfo.
void measure_calls(const TwoDrivers& drivers);

// Where the GPU is split: a launch, by symbol and by look-up, and what has to be translated.
void measure_split(const TwoDrivers& drivers);

// cuMemAlloc and cuMemFree, with more and more live allocations, from one thread and from two.
void measure_pairs_in_job(const TwoDrivers& drivers);
void measure_pairs(const TwoDrivers& drivers);

}  // namespace cuslice::bench
