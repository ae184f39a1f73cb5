// SPDX-License-Identifier: Apache-2.0
// The reuse guests' check of the driver's answers, and their random numbers.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace reuse {

/// Ends the program unless the driver said yes: nothing here may fail but an allocation.
inline void must(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %d\n", what, result);
    std::_Exit(3);
}
#define REUSE_MUST(call) ::reuse::must(call, #call)

/// splitmix64: the same on every machine.
class Chance {
  public:
    explicit Chance(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    uint64_t below(uint64_t n) { return next() % n; }
    bool percent(unsigned p) { return below(100) < p; }

  private:
    uint64_t state_;
};

}  // namespace reuse
