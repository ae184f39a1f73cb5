// SPDX-License-Identifier: Apache-2.0
#pragma once
// Obstacles to a call, as bits of one word. The code that knows of an obstacle sets its bit, and every function looks
// at the word first (api_prologue.h).

#include <atomic>

namespace cuslice::fake {

enum GateBit : unsigned {
    kGateNotInitialised = 1,  // before cuInit, and for good in a child that was forked after it
    kGateDeinitialised = 2,   // the process is ending
    kGateInjection = 4,       // CUSLICE_FAKE_INJECT is set
    kGateLate = 8,            // CUSLICE_FAKE_STREAMS=late
    kGateFault = 16,          // some context's work has failed
};
inline constinit std::atomic<unsigned> gate{kGateNotInitialised};

}  // namespace cuslice::fake
