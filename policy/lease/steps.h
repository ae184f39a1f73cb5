// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// Changes that members make to the state. Each function leaves it with all done that is due. Pure; `member` and `gpu`
// are numbers of the state's.
namespace cuslice::lease {

inline constexpr uint32_t kNoPlace = ~0u;

/// A new value: nobody is in it.
void make_empty(State& state, const Terms& terms);
/// False for what no step leaves behind: a file may say anything.
bool is_whole(const State& state);

/// The GPU's number; kNoPlace: there are kGpus others.
uint32_t number_of_gpu(State& state, const char* uuid);
/// The job of this number, which is made where there is none; kNoPlace: there are kJobs others.
uint32_t place_of_job(State& state, uint64_t id);
/// The job's and the GPU's number; kNoPlace: there is none.
uint32_t find_job(const State& state, uint64_t id);
uint32_t find_gpu(const State& state, const char* uuid);
/// Enters a process in a job; kNoPlace: there are kMembers others. `self`: its identity alone is taken.
uint32_t enter(State& state, uint32_t job, const Member& self);
/// Takes a process out, at its end or once it has ended, and its job with the last one.
void leave(State& state, uint32_t member, uint64_t now);

/// Sets the job's weight and cap on a GPU, in percent, from 1 to kWhole.
void set_share(State& state, uint32_t job, uint32_t gpu, uint32_t weight, uint32_t cap, uint64_t now);
/// The same where the job has no share of the GPU yet. Of one that has, the share may have been changed since.
void take_share(State& state, uint32_t job, uint32_t gpu, uint32_t weight, uint32_t cap, uint64_t now);

/// A thread of the member stands at the gate. Nothing changes where one does already.
void want(State& state, uint32_t member, uint64_t now);
/// It gives up, or goes on without the lease.
void stop_wanting(State& state, uint32_t member, uint64_t now);
/// The member's work has taken so much of a GPU in this turn.
void report(State& state, uint32_t member, uint32_t gpu, uint64_t nanoseconds);
/// All work of the member's has run out: the turn ends with the last member's.
void pass(State& state, uint32_t member, uint64_t now);
/// A job's turn ends although its work has not run out: it is charged for what it held the GPUs, and no more later, as
/// from here on it has them together with others and nobody here knows its part.
void pass_by(State& state, uint32_t job, uint64_t now);

}  // namespace cuslice::lease
