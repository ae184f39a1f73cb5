// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice::tests {

/// The code whose calls can fail: the preloaded library's, the launcher's, or the code of the library that leads a
/// program's static runtime elsewhere.
enum class CallsOf : uint8_t { library, launcher, redirect };

/// A file that the test and the processes share, in which they count the calls of cuslice's into the C library. A run
/// of one thread makes the same ones each time.
struct FailingCall {
    CallsOf of = CallsOf::library;
    uint64_t failing = 0;   // the number of the call that fails, from 1; 0: none does
    uint64_t in_a_row = 1;  // with those after it, so many fail: one is cleaned up after while another fails
    uint64_t again = 0;     // the number of another call that fails, far from it; 0: none does
    int error = 0;          // errno of its failure; 0: the one that is most likely for the call
    uint64_t calls = 0;     // made so far
    static constexpr uint64_t kNoted = 4096;
    uint64_t places[kNoted] = {};  // of the first ones: their return addresses in the library
    char name[32] = {};            // of the call that has failed; empty: none has
};

}  // namespace cuslice::tests
