// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/steps.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "policy/lease/credit.h"
#include "policy/lease/members.h"
#include "policy/lease/schedule.h"
#include "policy/lease/turn.h"

namespace cuslice::lease {

namespace {

// Far beyond what turns and rounds make: sums of such times don't overflow.
constexpr int64_t kMostCredit = int64_t{1} << 50;
constexpr uint64_t kMostTime = uint64_t{1} << 62;

bool is_percent(uint32_t value) { return value >= 1 && value <= kWhole; }

bool is_whole(const Terms& terms) {
    return terms.quantum >= kLeastQuantum && terms.quantum <= kMostQuantum && terms.patience <= kMostTime;
}

bool is_whole(const Claim& claim) {
    const bool known = claim.weight == 0 || (is_percent(claim.weight) && is_percent(claim.cap));
    const bool bounded = claim.credit <= kMostCredit && claim.credit >= -kMostCredit;
    return known && bounded && claim.reported <= kMostTime && claim.not_before <= kMostTime;
}

bool is_whole(const Job& job) {
    const auto whole = [](const Claim& claim) { return is_whole(claim); };
    const bool times = job.since <= kMostTime && job.start <= kMostTime && job.end <= kMostTime;
    const bool phase = job.phase <= Phase::closing && (holds(job) || job.held == 0);
    const bool known = job.held < bit(kGpus) && job.closed <= kMostTime;
    return times && phase && known && std::all_of(job.claims, job.claims + kGpus, whole);
}

bool has_end(const Gpu& gpu) { return memchr(gpu.uuid, '\0', sizeof gpu.uuid) != nullptr; }

uint32_t index_of(const State& state, const Member& member) { return static_cast<uint32_t>(&member - state.members); }

void start_waiting(Job& job, uint64_t now) {
    job.phase = Phase::waiting;
    job.since = now;
    job.lent = job.lent && has_time(job, now);
}

void end_if_nobody_is_busy(State& state, Job& job, uint64_t now) {
    if (holds(job) && !any_member(state, job, is_busy))
        end_turn(state, job, now);
}

void stop_waiting_if_nobody_wants(State& state, Job& job) {
    if (job.phase == Phase::waiting && !any_member(state, job, is_wanting))
        job.phase = Phase::idle;
}

// One that has come to use one GPU more can only have it together with the others.
void close_if_it_lacks_any(State& state, Job& job, uint64_t now) {
    if (job.phase == Phase::holding && job.held != gpus_of(job))
        close(state, job, now);
}

}  // namespace

void make_empty(State& state, const Terms& terms) {
    memset(static_cast<void*>(&state), 0, sizeof state);
    state.terms = terms;
}

bool is_whole(const State& state) {
    const auto whole = [](const auto& part) { return is_whole(part); };
    const auto in_a_job = [](const Member& member) { return member.job < kJobs; };
    uint32_t held = 0;
    for (const Job& job : state.jobs) {
        if (held & job.held)
            return false;
        held |= job.held;
    }
    return is_whole(state.terms) && std::all_of(state.gpus, state.gpus + kGpus, has_end) &&
           std::all_of(state.jobs, state.jobs + kJobs, whole) &&
           std::all_of(state.members, state.members + kMembers, in_a_job);
}

uint32_t number_of_gpu(State& state, const char* uuid) {
    for (uint32_t gpu = 0; gpu < kGpus; gpu++) {
        char(&name)[sizeof Gpu::uuid] = state.gpus[gpu].uuid;
        if (!name[0])
            snprintf(name, sizeof name, "%s", uuid);
        if (strcmp(name, uuid) == 0)
            return gpu;
    }
    return kNoPlace;
}

uint32_t find_job(const State& state, uint64_t id) {
    const Job* const end = state.jobs + kJobs;
    const Job* const job = std::find_if(state.jobs, end, [&](const Job& one) { return one.id == id; });
    return job == end ? kNoPlace : index_of(state, *job);
}

uint32_t find_gpu(const State& state, const char* uuid) {
    const Gpu* const end = state.gpus + kGpus;
    const Gpu* const gpu = std::find_if(state.gpus, end, [&](const Gpu& one) { return strcmp(one.uuid, uuid) == 0; });
    return gpu == end ? kNoPlace : static_cast<uint32_t>(gpu - state.gpus);
}

uint32_t place_of_job(State& state, uint64_t id) {
    constexpr uint64_t kNobodys = 0;
    const uint32_t found = find_job(state, id);
    if (found != kNoPlace)
        return found;
    const uint32_t place = find_job(state, kNobodys);
    if (place == kNoPlace)
        return kNoPlace;
    state.jobs[place] = {};
    state.jobs[place].id = id;
    return place;
}

uint32_t enter(State& state, uint32_t job, const Member& self) {
    Member* const place =
        std::find_if(state.members, state.members + kMembers, [](const Member& member) { return is_free(member); });
    if (place == state.members + kMembers)
        return kNoPlace;
    const uint64_t gate = place->gate;
    *place = self;
    place->job = job;
    place->wants = place->busy = 0;
    place->gate = gate;
    return index_of(state, *place);
}

void leave(State& state, uint32_t member, uint64_t now) {
    Member& place = state.members[member];
    Job& job = state.jobs[place.job];
    place.presence = 0;
    place.wants = place.busy = 0;
    end_if_nobody_is_busy(state, job, now);
    stop_waiting_if_nobody_wants(state, job);
    if (!any_member(state, job, [](const Member&) { return true; }))
        job = {};
    schedule(state, now);
}

void set_share(State& state, uint32_t job, uint32_t gpu, uint32_t weight, uint32_t cap, uint64_t now) {
    Claim& claim = state.jobs[job].claims[gpu];
    claim.weight = std::clamp(weight, 1u, kWhole);
    claim.cap = std::clamp(cap, 1u, kWhole);
    close_if_it_lacks_any(state, state.jobs[job], now);
    schedule(state, now);
}

void take_share(State& state, uint32_t job, uint32_t gpu, uint32_t weight, uint32_t cap, uint64_t now) {
    if (uses(state.jobs[job], gpu))
        schedule(state, now);
    else
        set_share(state, job, gpu, weight, cap, now);
}

void want(State& state, uint32_t member, uint64_t now) {
    Member& self = state.members[member];
    Job& job = state.jobs[self.job];
    const bool has_turn = job.phase == Phase::holding;
    self.busy |= has_turn;
    self.wants = !has_turn;
    if (job.phase == Phase::idle)
        start_waiting(job, now);
    schedule(state, now);
}

void stop_wanting(State& state, uint32_t member, uint64_t now) {
    state.members[member].wants = 0;
    stop_waiting_if_nobody_wants(state, state.jobs[state.members[member].job]);
    schedule(state, now);
}

void report(State& state, uint32_t member, uint32_t gpu, uint64_t nanoseconds) {
    Job& job = state.jobs[state.members[member].job];
    if (job.held & bit(gpu))
        job.claims[gpu].reported += std::min(nanoseconds, kMostTime / kMembers);
}

void pass(State& state, uint32_t member, uint64_t now) {
    Member& self = state.members[member];
    Job& job = state.jobs[self.job];
    if (!self.busy)
        return schedule(state, now);
    self.busy = 0;
    job.lent = job.phase == Phase::holding;
    end_if_nobody_is_busy(state, job, now);
    schedule(state, now);
}

void pass_by(State& state, uint32_t job, uint64_t now) {
    for (Claim& claim : state.jobs[job].claims)
        claim.reported = 0;
    if (holds(state.jobs[job]))
        end_turn(state, state.jobs[job], now);
    schedule(state, now);
}

}  // namespace cuslice::lease
