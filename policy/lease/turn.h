// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// A job's turn: its beginning, the moment from which no more is submitted, and its end. Pure.
namespace cuslice::lease {

/// Gives a job that waits all its GPUs. `length`: 0 where it is lent them, until who is next can have all of its own.
void grant(State& state, Job& job, uint64_t now, uint64_t length);

/// The holder's turn is over: no more is submitted, and it ends where nothing runs any more.
void close(State& state, Job& job, uint64_t now);

/// Ends a holder's turn: what it took is charged, and it waits again if one of its members wants.
void end_turn(State& state, Job& job, uint64_t now);

}  // namespace cuslice::lease
