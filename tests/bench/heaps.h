// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "tests/bench/two_drivers.h"

namespace cuslice::bench {

// A workload of threads on one heap, after benchmarks of allocators that people know. `run` returns nanoseconds an
// operation, of all threads together, and leaves nothing allocated.
struct Heap {
    std::string name;
    double (*run)(const TwoDrivers& drivers, const Driver& driver);
};
std::vector<Heap> heaps();

}  // namespace cuslice::bench
