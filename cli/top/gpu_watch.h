// SPDX-License-Identifier: Apache-2.0
// Asks for a machine's GPUs beside the view: NVML may take seconds to answer, or hang, and keys must work meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/gpus/gpus.h"

namespace cuslice::cli::top {

/// A child process asks, one question at a time. Not thread-safe.
class GpuWatch {
  public:
    explicit GpuWatch(std::function<Gpus()> ask) : ask_(std::move(ask)) {}
    ~GpuWatch() { stop(); }
    GpuWatch(const GpuWatch&) = delete;
    GpuWatch& operator=(const GpuWatch&) = delete;

    /// Asks, unless that is going on, or the last answer is younger than two seconds.
    void ask();
    /// A descriptor that can be read once there is something to take; -1 while nothing is asked.
    int descriptor() const { return answer_; }
    /// Reads what has come. True if that completes an answer.
    bool take();
    /// Kills a child that has not answered, as the destructor does.
    void stop();
    /// The latest answer; null before the first.
    const Gpus* latest() const { return latest_ ? &*latest_ : nullptr; }

  private:
    void finish();

    const std::function<Gpus()> ask_;
    std::optional<Gpus> latest_;
    uint64_t answered_ = 0;  // kernel_clock(CLOCK_MONOTONIC)
    int answer_ = -1;
    pid_t child_ = 0;
    std::string text_;
};

}  // namespace cuslice::cli::top
