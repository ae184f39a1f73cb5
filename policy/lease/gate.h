// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// A member's gate: a number that grows with each change, and four bits.
namespace cuslice::lease {

inline constexpr uint64_t kOpen = 1;    // its threads may submit
inline constexpr uint64_t kWanted = 2;  // somebody waits: it passes the lease on once nothing of it is queued

inline constexpr uint64_t kCompany = 4;  // another job uses a GPU of its own: it may come to wait

inline constexpr uint64_t kLender = 8;  // one of these pauses, has lent it time, and comes first once it is back

constexpr bool is_open(uint64_t gate) { return gate & kOpen; }
constexpr bool is_wanted(uint64_t gate) { return gate & kWanted; }
constexpr bool has_company(uint64_t gate) { return gate & kCompany; }
constexpr bool has_lender(uint64_t gate) { return gate & kLender; }
/// True if a launch needn't look any further.
constexpr bool goes_on_at_once(uint64_t gate) { return (gate & (kOpen | kWanted | kCompany)) == kOpen; }

/// Sets each member's gate to what the jobs' phases ask for.
void set_gates(State& state, uint64_t now);

/// Shows a member's threads its gate, unless they have been shown a later one. True if that is news to them.
bool show_gate(Gate& gate, uint64_t next);

}  // namespace cuslice::lease
