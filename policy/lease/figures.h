// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// Times of a job, with what holds now: sums over jobs and moments add up. Pure.
namespace cuslice::lease {

/// Time that the job has had a GPU, as far as it is charged for it, and in the turn that is running.
constexpr uint64_t had_until(const Job& job, uint32_t gpu, uint64_t now) {
    const bool running = job.held & bit(gpu);
    return job.claims[gpu].had + (running ? elapsed(job.since, now) : 0);
}

/// Time that the job has waited, of all its GPUs at once.
constexpr uint64_t waited_until(const Job& job, uint64_t now) {
    const bool waits = job.phase == Phase::waiting;
    return job.waited + (waits ? elapsed(job.since, now) : 0);
}

}  // namespace cuslice::lease
