// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "policy/lease/layout.h"

// The order in which jobs have their turns: that in which they began to wait, behind those that are back from a pause.
namespace cuslice::lease {

/// The jobs that may start, the next one first. Pointers into the value.
class Queue {
  public:
    Queue(State& state, uint64_t now);
    std::span<Job* const> jobs() const { return {jobs_, count_}; }

  private:
    void insert(Job* job);

    Job* jobs_[kJobs];
    uint32_t count_ = 0;
};

/// The job's place among those who wait; 0: it is the first, or doesn't wait.
uint32_t place_in_queue(const State& state, const Job& job);

}  // namespace cuslice::lease
