// SPDX-License-Identifier: Apache-2.0
// The last moments of each GPU, for the lines that `cuslice top` draws of them, and what jobs have had since the last.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cli/top/snapshot.h"

namespace cuslice::cli::top {

/// Values of a GPU's memory in use and of its load, as snapshots came. Not thread-safe.
class History {
  public:
    /// Moments that are kept of a GPU: as many as the widest line shows.
    static constexpr size_t kMost = 120;

    /// Notes a snapshot's figures, and gives it those of its GPUs, and each job's part of the time since the last one.
    /// A GPU or a job that it doesn't have is forgotten. `now`: nanoseconds of any steady clock.
    void note(Snapshot& snapshot, uint64_t now);

  private:
    void note_times(std::vector<JobTime>& jobs, uint64_t now);

    std::map<std::string, Moments> of_gpus_;                                  // by UUID
    std::map<std::tuple<std::string, unsigned, std::string>, uint64_t> had_;  // by GPU, user and job: nanoseconds
    uint64_t noted_ = 0;                                                      // when that was
};

}  // namespace cuslice::cli::top
