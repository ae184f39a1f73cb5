// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// The cost of turns. Pure.
namespace cuslice::lease {

/// Starts to charge a holder, as somebody waits from now on. Until now it took what nobody wanted, which costs it no
/// more than what it had left.
void begin_contest(Job& job, uint64_t now);
/// The reverse: nobody waits any more.
void end_contest(Job& job, uint64_t now);
/// Charges a holder's turn on all GPUs that it holds: what its members report, and never more than it held them.
void charge_turn(const State& state, Job& job, uint64_t now);

}  // namespace cuslice::lease
