// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tests/policy/lease/python_random.h"
#include "tests/policy/lease/simulation/machine.h"

namespace cuslice::tests {

/// Kernels as ../shared/prototypes/lease_sim.py of the design had them, by name: "tiny", "ms", "5ms", "50ms", "llm".
class Kernels {
  public:
    Kernels(std::string kind, uint32_t seed) : kind_(std::move(kind)), random_(seed) {}
    /// Nanoseconds.
    uint64_t next();

  private:
    double milliseconds();

    std::string kind_;
    PythonRandom random_;
};

/// A program's demand of each of its GPUs.
struct Demand {
    std::string kernels = "ms";
    double on_gpu = 0;  // milliseconds of kernels, then
    double on_cpu = 0;  // so many without; both 0: it is never idle
    bool never_idle() const { return on_gpu == 0; }
};

inline uint64_t nanoseconds(double milliseconds) { return static_cast<uint64_t>(milliseconds * 1e6); }

}  // namespace cuslice::tests
