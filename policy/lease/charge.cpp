// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/charge.h"

#include <algorithm>
#include <limits>

#include "policy/lease/credit.h"
#include "policy/lease/rounds.h"

namespace cuslice::lease {

namespace {

int64_t as_time(uint64_t nanoseconds) { return static_cast<int64_t>(nanoseconds); }

// Time that a turn took of a GPU. Members that say nothing, as one that was killed, are charged for all of it.
uint64_t taken(const Claim& claim, uint64_t held_for) {
    return claim.reported ? std::min(claim.reported, held_for) : held_for;
}

// Time that was borrowed would have been nobody's: it puts a job behind by no more rounds than another may be ahead.
int64_t least_credit(const State& state, const Job& job, uint32_t gpu) {
    return job.borrows ? -kMostAhead * share_of_round(state, job, gpu) : std::numeric_limits<int64_t>::min();
}

void charge(const State& state, Job& job, uint32_t gpu, int64_t time) {
    int64_t& credit = job.claims[gpu].credit;
    const int64_t least = std::min(credit, least_credit(state, job, gpu));
    credit = std::max(credit - time, least);
}

void forgive_beyond_credit(Job& job, uint64_t now) {
    const int64_t time = as_time(elapsed(job.start, now));
    for (Claim& claim : job.claims)
        claim.credit -= std::clamp<int64_t>(claim.credit, 0, time);
}

uint64_t end_of_break(const Job& job, const Claim& claim, uint64_t had) {
    return claim.cap < kWhole ? job.since + had * kWhole / claim.cap : 0;
}

void charge_turn_on(const State& state, Job& job, uint32_t gpu, uint64_t now) {
    Claim& claim = job.claims[gpu];
    const uint64_t had = taken(claim, elapsed(job.since, now));
    if (job.contested)
        charge(state, job, gpu, as_time(taken(claim, elapsed(job.start, now))));
    claim.had += had;
    claim.not_before = end_of_break(job, claim, had);
}

}  // namespace

void begin_contest(Job& job, uint64_t now) {
    forgive_beyond_credit(job, now);
    job.contested = 1;
    job.start = now;
    job.end = now + turn_length(job, now);
}

void end_contest(Job& job, uint64_t now) {
    for (Claim& claim : job.claims)
        claim.credit -= claim.weight ? as_time(elapsed(job.start, now)) : 0;
    job.contested = 0;
    job.start = now;
}

void charge_turn(const State& state, Job& job, uint64_t now) {
    if (!job.contested)
        forgive_beyond_credit(job, now);
    for (uint32_t gpu = 0; gpu < kGpus; gpu++) {
        if (job.held & bit(gpu))
            charge_turn_on(state, job, gpu, now);
        job.claims[gpu].reported = 0;
    }
}

}  // namespace cuslice::lease
