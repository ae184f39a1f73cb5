// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// A member's gate: a number that grows with each change, and two bits.
namespace cuslice::lease {

inline constexpr uint64_t kOpen = 1;    // its threads may submit
inline constexpr uint64_t kWanted = 2;  // somebody waits: it passes the lease on once nothing of it is queued

constexpr bool is_open(uint64_t gate) { return gate & kOpen; }
constexpr bool is_wanted(uint64_t gate) { return gate & kWanted; }

/// Sets each member's gate to what the jobs' phases ask for.
void set_gates(State& state);

/// Shows a member's threads its gate, unless they have been shown a later one. True if that is news to them.
bool show_gate(Gate& gate, uint64_t next);

}  // namespace cuslice::lease
