// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "policy/lease/layout.h"

// Parts of a value that belong together: the processes of a job, and the jobs of a GPU.
namespace cuslice::lease {

inline bool is_in(const State& state, const Job& job, const Member& member) {
    return !is_free(member) && member.job == index_of(state, job);
}

/// True if it may submit in its job's turn, or has.
inline bool is_holder(const State& state, const Member& member) {
    return !is_free(member) && member.busy && holds(state.jobs[member.job]);
}

inline bool is_busy(const Member& member) { return member.busy; }
inline bool is_wanting(const Member& member) { return member.wants; }

template <typename Each>
void for_each_member(State& state, const Job& job, Each each) {
    for (Member& member : state.members)
        if (is_in(state, job, member))
            each(member);
}

template <typename Is>
bool any_member(const State& state, const Job& job, Is is) {
    const auto found = [&](const Member& member) { return is_in(state, job, member) && is(member); };
    return std::any_of(state.members, state.members + kMembers, found);
}

template <typename Is>
bool any_job(const State& state, Is is) {
    return std::any_of(state.jobs, state.jobs + kJobs, is);
}

/// Each job that uses the GPU. Value is a State, const or not.
template <typename Value, typename Each>
void for_each_user(Value& state, uint32_t gpu, Each each) {
    for (auto& job : state.jobs)
        if (uses(job, gpu))
            each(job);
}

/// True if any job that uses the GPU is so.
template <typename Is>
bool any_user(const State& state, uint32_t gpu, Is is) {
    return any_job(state, [&](const Job& job) { return uses(job, gpu) && is(job); });
}

}  // namespace cuslice::lease
