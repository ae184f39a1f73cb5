// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// Time that jobs may still take, by what rounds gave them and what their turns took. Pure.
namespace cuslice::lease {

/// Time that the job may still take of a GPU in this round, less what it has taken in its turn so far.
int64_t left(const Job& job, uint32_t gpu, uint64_t now);
/// The least of that over its GPUs.
int64_t least_left(const Job& job, uint64_t now);
/// Length of a turn that begins now. 0: it has no time left.
uint64_t turn_length(const Job& job, uint64_t now);
/// True if it has time left on all its GPUs.
inline bool has_time(const Job& job, uint64_t now) { return least_left(job, now) > 0; }
/// True if its turn is over, so that it may be closed.
bool is_over(const Job& job, uint64_t now);
/// True if somebody has one of these GPUs whose turn isn't over.
bool waits_for_others(const State& state, uint32_t gpus, uint64_t now);
/// True if it waits, and its cap asks for no break.
bool may_start(const Job& job, uint64_t now);

}  // namespace cuslice::lease
