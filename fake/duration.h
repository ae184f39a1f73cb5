// SPDX-License-Identifier: Apache-2.0
#pragma once
// Durations in the fake GPU's settings, and waiting for one.

#include <cstdint>
#include <string>

namespace cuslice::fake {

/// Reads "50us" (ns, us, ms, s; at most an hour) into nanoseconds.
bool parse_duration(const std::string& text, uint64_t& nanoseconds);

/// Sleeps when there is time to, else spins: a sleep of 5 µs takes 60.
void pause_for(uint64_t nanoseconds);

}  // namespace cuslice::fake
