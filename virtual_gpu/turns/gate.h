// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "policy/lease/gate.h"

// The gate at which this process's launches stand where time is shared. Before the first one, a closed one.
extern "C" {
__attribute__((visibility("hidden"))) extern std::atomic<cuslice::lease::Gate*> cuslice_gate;
}

namespace cuslice {

/// True if a launch may go on at once: it is the job's turn, and there is no other job. The gates in
/// shim/driver/gates.S ask the same.
inline bool goes_on_at_once() {
    return lease::goes_on_at_once(cuslice_gate.load(std::memory_order_relaxed)->word.load(std::memory_order_relaxed));
}

}  // namespace cuslice
