// SPDX-License-Identifier: Apache-2.0
// The last moments of each GPU, for the lines that `cuslice top` draws of them.
#pragma once

#include <map>
#include <string>

#include "cli/top/snapshot.h"

namespace cuslice::cli::top {

/// Values of a GPU's memory in use and of its load, as snapshots came. Not thread-safe.
class History {
  public:
    /// Moments that are kept of a GPU: as many as the widest line shows.
    static constexpr size_t kMost = 120;

    /// Notes a snapshot's figures, and gives it those of its GPUs. A GPU that it doesn't have is forgotten.
    void note(Snapshot& snapshot);

  private:
    std::map<std::string, Moments> of_gpus_;  // by UUID
};

}  // namespace cuslice::cli::top
