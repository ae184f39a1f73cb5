// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/queue.h"

#include <algorithm>

#include "policy/lease/credit.h"

namespace cuslice::lease {

namespace {

bool is_before(const Job& a, const Job& b) {
    if (a.lent != b.lent)
        return a.lent > b.lent;
    return a.since != b.since ? a.since < b.since : &a < &b;
}

}  // namespace

Queue::Queue(State& state, uint64_t now) {
    for (Job& job : state.jobs)
        if (may_start(job, now))
            insert(&job);
}

void Queue::insert(Job* job) {
    const auto comes_first = [](const Job* a, const Job* b) { return is_before(*a, *b); };
    Job** const end = jobs_ + count_;
    Job** const at = std::upper_bound(jobs_, end, job, comes_first);
    std::copy_backward(at, end, end + 1);
    *at = job;
    count_++;
}

uint32_t place_in_queue(const State& state, const Job& job) {
    if (job.phase != Phase::waiting)
        return 0;
    const auto comes_first = [&](const Job& other) { return other.phase == Phase::waiting && is_before(other, job); };
    return static_cast<uint32_t>(std::count_if(state.jobs, state.jobs + kJobs, comes_first));
}

}  // namespace cuslice::lease
