// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/lease/simulation/workload.h"

#include <stdexcept>

namespace cuslice::tests {

double Kernels::milliseconds() {
    if (kind_ == "tiny")
        return random_.uniform(0.005, 0.05);
    if (kind_ == "ms")
        return random_.uniform(0.5, 2);
    if (kind_ == "5ms")
        return random_.uniform(1, 5);
    if (kind_ == "50ms")
        return random_.uniform(20, 50);
    if (kind_ == "llm")  // steps of a decoder, and now and then a prompt
        return random_.random() < 0.97 ? 0.02 : random_.uniform(2, 12);
    throw std::invalid_argument(kind_);
}

uint64_t Kernels::next() { return nanoseconds(milliseconds()); }

}  // namespace cuslice::tests
