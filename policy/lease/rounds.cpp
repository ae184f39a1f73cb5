// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/rounds.h"

#include <algorithm>
#include <limits>

#include "policy/lease/credit.h"
#include "policy/lease/members.h"

namespace cuslice::lease {

namespace {

constexpr int64_t kNoRounds = std::numeric_limits<int64_t>::max();

bool wants(const Job& job, uint64_t now) { return holds(job) || may_start(job, now); }

// One that has to wait for another GPU as well can't: the rounds of those who can have this one go on.
bool can_start(const State& state, const Job& job, uint32_t gpu, uint64_t now) {
    return may_start(job, now) && !waits_for_others(state, gpus_of(job) & ~bit(gpu), now);
}

// A job that may take the GPU in this round, or has it still.
bool is_served(const State& state, const Job& job, uint32_t gpu, uint64_t now) {
    if (job.phase == Phase::closing)
        return true;
    if (!has_time(job, now))
        return false;
    return job.phase == Phase::holding || can_start(state, job, gpu, now);
}

// Rounds until the first of those who have overdrawn has time again.
int64_t rounds_needed(const State& state, uint32_t gpu, uint64_t now) {
    int64_t rounds = kNoRounds;
    for_each_user(state, gpu, [&](const Job& job) {
        const int64_t time = left(job, gpu, now);
        if (wants(job, now) && time <= 0)
            rounds = std::min(rounds, -time / share_of_round(state, job, gpu) + 1);
    });
    return rounds == kNoRounds ? 1 : rounds;
}

// A pause saves nothing up: a job that doesn't want the GPU has no more left than one round gives it, or one that
// paused for an hour would keep the GPU for as long.
void give(const State& state, Job& job, uint32_t gpu, int64_t rounds, uint64_t now) {
    const int64_t share = share_of_round(state, job, gpu);
    const int64_t most = job.phase == Phase::idle ? share : kMostAhead * share;
    const int64_t before = left(job, gpu, now);
    const int64_t after = std::max(before, std::min(before + rounds * share, most));
    job.claims[gpu].credit += after - before;
}

// True if somebody wants the GPU, and nobody has time left to take it.
bool is_due(const State& state, uint32_t gpu, uint64_t now) {
    const auto is_wanting = [&](const Job& job) { return wants(job, now); };
    const auto takes_it = [&](const Job& job) { return is_served(state, job, gpu, now); };
    return any_user(state, gpu, is_wanting) && !any_user(state, gpu, takes_it);
}

bool begin_round(State& state, uint32_t gpu, uint64_t now) {
    if (!is_due(state, gpu, now))
        return false;
    const int64_t rounds = rounds_needed(state, gpu, now);
    for_each_user(state, gpu, [&](Job& job) { give(state, job, gpu, rounds, now); });
    return true;
}

}  // namespace

int64_t share_of_round(const State& state, const Job& job, uint32_t gpu) {
    const uint64_t weight = job.claims[gpu].weight;
    uint64_t weights = weight, count = 1;
    for_each_user(state, gpu, [&](const Job& other) {
        if (&other == &job || other.phase == Phase::idle)
            return;
        weights += other.claims[gpu].weight;
        count++;
    });
    return static_cast<int64_t>(state.terms.quantum * count * weight / weights);
}

// Each pass lets somebody have time on a GPU, and takes none from anybody.
void begin_rounds(State& state, uint64_t now) {
    bool began = true;
    for (uint32_t pass = 0; began && pass < kJobs * kGpus; pass++) {
        began = false;
        for (uint32_t gpu = 0; gpu < kGpus; gpu++)
            began |= begin_round(state, gpu, now);
    }
}

}  // namespace cuslice::lease
