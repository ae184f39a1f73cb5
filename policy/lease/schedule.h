// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// All that is due at a moment: who is closed, and who is next. Pure.
namespace cuslice::lease {

/// Does all that is due: closes turns, begins rounds, and gives GPUs to who is next.
void schedule(State& state, uint64_t now);

/// When something is due that no member does by itself; at most `most` from now.
uint64_t next_event(const State& state, uint64_t now, uint64_t most);

}  // namespace cuslice::lease
