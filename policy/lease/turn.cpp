// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/turn.h"

#include "policy/lease/charge.h"
#include "policy/lease/members.h"

namespace cuslice::lease {

namespace {

void let_in(Member& member) {
    if (!member.wants)
        return;
    member.wants = 0;
    member.busy = 1;
}

}  // namespace

void grant(State& state, Job& job, uint64_t now, uint64_t length) {
    job.waited += elapsed(job.since, now);
    job.turns++;
    job.phase = Phase::holding;
    job.held = gpus_of(job);
    job.contested = job.lent = 0;
    job.borrows = length == 0;
    job.since = job.start = now;
    job.end = now + length;
    for_each_member(state, job, let_in);
}

void close(State& state, Job& job, uint64_t now) {
    if (job.phase == Phase::closing)
        return;
    job.phase = Phase::closing;
    job.closed = now;
    if (!any_member(state, job, is_busy))
        end_turn(state, job, now);
}

void end_turn(State& state, Job& job, uint64_t now) {
    charge_turn(state, job, now);
    job.held = 0;
    job.contested = 0;
    job.phase = any_member(state, job, is_wanting) ? Phase::waiting : Phase::idle;
    job.since = now;
    for_each_member(state, job, [](Member& member) { member.busy = 0; });
}

}  // namespace cuslice::lease
