// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "virtual_gpu/driver/nvml.h"

namespace cuslice::bench {

// A throttle of launches that goes by NVML alone, as other libraries' do: each kernel takes a token, tokens come at a
// rate, and a thread corrects the rate by what part of the last second the process's kernels ran. A control for
// benchmarks, of nobody's code.
class TokenBucket {
  public:
    // `percent` of the first GPU's time. Ends the program where NVML doesn't answer.
    explicit TokenBucket(double percent);
    TokenBucket(const TokenBucket&) = delete;

    // Waits for a token. One thread.
    void take();

  private:
    [[noreturn]] static void* run(void* self);
    void correct(double used);
    double used() const;

    const double wanted_;  // percent
    nvmlDevice_t device_ = nullptr;
    std::atomic<double> rate_;  // kernels a second
    double tokens_ = 0;
    int64_t filled_at_;
};

}  // namespace cuslice::bench
