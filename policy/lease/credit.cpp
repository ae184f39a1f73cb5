// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/credit.h"

#include <algorithm>
#include <limits>

#include "policy/lease/members.h"

namespace cuslice::lease {

namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

bool is_charged(const Job& job) { return holds(job) && job.contested; }

}  // namespace

bool is_over(const Job& job, uint64_t now) {
    if (job.phase == Phase::holding)
        return job.contested && job.end <= now;
    return job.phase == Phase::closing;
}

bool waits_for_others(const State& state, uint32_t gpus, uint64_t now) {
    return any_job(state, [&](const Job& job) { return (job.held & gpus) && !is_over(job, now); });
}

int64_t left(const Job& job, uint32_t gpu, uint64_t now) {
    const uint64_t taken = is_charged(job) ? elapsed(job.start, now) : 0;
    return job.claims[gpu].credit - static_cast<int64_t>(taken);
}

int64_t least_left(const Job& job, uint64_t now) {
    int64_t least = kNone;
    for (uint32_t gpu = 0; gpu < kGpus; gpu++)
        if (uses(job, gpu))
            least = std::min(least, left(job, gpu, now));
    return least == kNone ? 0 : least;
}

uint64_t turn_length(const Job& job, uint64_t now) {
    return static_cast<uint64_t>(std::max<int64_t>(least_left(job, now), 0));
}

bool may_start(const Job& job, uint64_t now) {
    const auto asks_for_break = [&](const Claim& claim) { return claim.not_before > now; };
    return job.phase == Phase::waiting && std::none_of(job.claims, job.claims + kGpus, asks_for_break);
}

}  // namespace cuslice::lease
