// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/schedule.h"

#include <algorithm>

#include "policy/lease/charge.h"
#include "policy/lease/credit.h"
#include "policy/lease/gate.h"
#include "policy/lease/members.h"
#include "policy/lease/queue.h"
#include "policy/lease/rounds.h"
#include "policy/lease/turn.h"

namespace cuslice::lease {

namespace {

// Part of a quantum that a holder has at least before a job that comes back from a pause takes precedence: below that
// the two would hand the GPU to and fro for longer than they use it.
constexpr uint64_t kLeastPart = 10;

uint32_t gpus_held(const State& state) {
    uint32_t gpus = 0;
    for (const Job& job : state.jobs)
        gpus |= job.held;
    return gpus;
}

bool waits_for(const Job& job, const Job& holder) {
    return job.phase == Phase::waiting && (gpus_of(job) & holder.held) != 0;
}

// A job with a cap is charged also while nobody waits, and stops at the end of its turn.
bool has_cap(const Job& job) {
    const auto is_capped = [](const Claim& claim) { return claim.weight && claim.cap < kWhole; };
    return std::any_of(job.claims, job.claims + kGpus, is_capped);
}

bool is_contested(const State& state, const Job& holder) {
    return has_cap(holder) || any_job(state, [&](const Job& job) { return waits_for(job, holder); });
}

void follow_contest(Job& holder, bool contested, uint64_t now) {
    if (contested == static_cast<bool>(holder.contested))
        return;
    if (contested)
        begin_contest(holder, now);
    else if (holder.phase == Phase::holding)
        end_contest(holder, now);
}

void follow_contests(State& state, uint64_t now) {
    for (Job& job : state.jobs)
        if (holds(job))
            follow_contest(job, is_contested(state, job), now);
}

// A job that is back from a pause, and has not used up what it lent.
bool takes_precedence(const Job& job, uint64_t now) { return job.lent && may_start(job, now) && has_time(job, now); }

void shorten_for_lenders(State& state, uint64_t now) {
    const uint64_t least = state.terms.quantum / kLeastPart;
    for (Job& holder : state.jobs) {
        const auto presses = [&](const Job& job) { return takes_precedence(job, now) && waits_for(job, holder); };
        if (holder.phase == Phase::holding && any_job(state, presses))
            holder.end = std::min(holder.end, std::max(now, holder.since + least));
    }
}

// True if all who hold one of these GPUs have had their turns; they are closed then.
bool close_over(State& state, uint32_t gpus, uint64_t now) {
    if (waits_for_others(state, gpus, now))
        return false;
    for (Job& holder : state.jobs)
        if (holder.held & gpus)
            close(state, holder, now);
    return true;
}

// GPUs that are kept for whoever is next, so that a job of several is not passed for ever by those of one.
struct Kept {
    uint32_t gpus = 0;
    uint32_t soon = 0;  // those whose next job only waits for work that runs out
};

void serve(State& state, Job& job, Kept& kept, uint64_t now) {
    const uint32_t gpus = gpus_of(job);
    const bool closed = close_over(state, gpus, now);
    if (!(gpus & gpus_held(state)))
        return grant(state, job, now, turn_length(job, now));
    kept.gpus |= gpus;
    kept.soon |= closed ? gpus : 0;
}

Kept serve_in_turn(State& state, const Queue& queue, uint64_t now) {
    Kept kept;
    for (Job* job : queue.jobs()) {
        const bool is_kept = gpus_of(*job) & kept.gpus;
        if (has_time(*job, now) && !is_kept)
            serve(state, *job, kept, now);
    }
    return kept;
}

// A GPU that is kept for a job which waits for another one's turn to end doesn't stand idle. Those who have time left
// come first, or weights would not count in time that is borrowed.
void lend(State& state, const Queue& queue, const Kept& kept, bool with_time, uint64_t now) {
    for (Job* job : queue.jobs()) {
        const bool waits = job->phase == Phase::waiting;
        const bool free = !(gpus_of(*job) & (gpus_held(state) | kept.soon));
        if (waits && free && has_time(*job, now) == with_time)
            grant(state, *job, now, 0);
    }
}

// A holder goes on where those who wait have no time left, and it has.
void extend(State& state, uint32_t kept, uint64_t now) {
    for (Job& job : state.jobs) {
        const bool is_through = job.phase == Phase::holding && is_over(job, now);
        if (is_through && !(job.held & kept) && has_time(job, now))
            job.end = now + turn_length(job, now);
    }
}

void close_capped(State& state, uint64_t now) {
    for (Job& job : state.jobs)
        if (is_over(job, now) && has_cap(job))
            close(state, job, now);
}

// The earliest of the moments that are still to come.
class Next {
  public:
    Next(uint64_t now, uint64_t latest) : now_(now), time_(latest) {}
    void consider(uint64_t time) {
        if (time > now_)
            time_ = std::min(time_, time);
    }
    uint64_t time() const { return time_; }

  private:
    const uint64_t now_;
    uint64_t time_;
};

void consider(const Job& job, const Terms& terms, Next& next) {
    switch (job.phase) {
        case Phase::idle:
            return;
        case Phase::waiting:
            for (const Claim& claim : job.claims)
                next.consider(claim.not_before);
            return;
        case Phase::holding:
            if (job.contested)
                next.consider(job.end);
            return;
        case Phase::closing:
            next.consider(job.closed + terms.quantum);
            next.consider(job.closed + terms.patience);
            return;
    }
}

}  // namespace

void schedule(State& state, uint64_t now) {
    follow_contests(state, now);
    close_capped(state, now);
    begin_rounds(state, now);
    shorten_for_lenders(state, now);
    const Queue queue(state, now);
    const Kept kept = serve_in_turn(state, queue, now);
    // A job of several GPUs that may take none now holds up no round any more: those who are lent them have to be told
    // apart by the time that the round gives them, and not by how long they have waited.
    begin_rounds(state, now);
    lend(state, queue, kept, true, now);
    lend(state, queue, kept, false, now);
    extend(state, kept.gpus, now);
    follow_contests(state, now);
    set_gates(state, now);
}

uint64_t next_event(const State& state, uint64_t now, uint64_t most) {
    Next next(now, now + most);
    for (const Job& job : state.jobs)
        consider(job, state.terms, next);
    return next.time();
}

}  // namespace cuslice::lease
