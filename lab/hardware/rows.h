// SPDX-License-Identifier: Apache-2.0
#pragma once
// A table of steps: after each, NVML's figure for this process and what cuslice counts, to the byte. Each row is
// written at once, so that a program that is cut off has told what it measured.
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "lab/hardware/driver.h"
#include "lab/hardware/management.h"
#include "lab/hardware/text.h"

namespace cuslice::check {

class Rows {
  public:
    explicit Rows(const Gpu& gpu) : gpu_(gpu) {
        std::printf(
            "| step | NVML's figure | step's size | counted by cuslice | NVML − counted |\n|---|---|---|---|---|\n");
    }

    void row(const std::string& step) {
        const auto process = process_bytes(getpid(), gpu_.uuid), counted = counted_bytes(gpu_.uuid);
        std::printf("| %s | %s | %s | %s | %s |\n", step.c_str(), mib(process).c_str(),
                    mib_between(process, last_).c_str(), mib(counted).c_str(), mib_between(process, counted).c_str());
        std::fflush(stdout);
        last_ = process;
    }

    /// A step that this driver may refuse: the refusal is in its row.
    CUresult attempt(const std::string& step, CUresult result) {
        row(result == CUDA_SUCCESS ? step : step + ": " + name_of(result));
        return result;
    }

  private:
    Gpu gpu_;
    std::optional<uint64_t> last_ = 0;
};

}  // namespace cuslice::check
