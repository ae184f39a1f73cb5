// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

// Rounds of a GPU, by deficit round robin: each gives the GPU's jobs their shares of the quantum. A job that overdraws
// pays with the rounds to come. Pure.
namespace cuslice::lease {

/// Rounds that a job may be ahead on one of its GPUs, where it has to wait for those of another one. Fewer than these,
/// and it would lose rounds on each for the sake of the other.
inline constexpr int64_t kMostAhead = 4;

/// The job's part of a quantum for each who wants the GPU, itself included. Never 0, as every weight is at least 1 %.
int64_t share_of_round(const State& state, const Job& job, uint32_t gpu);

/// Begins rounds until each GPU that somebody wants has a job that may take it.
void begin_rounds(State& state, uint64_t now);

}  // namespace cuslice::lease
