// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/lock_rank.h"

namespace cuslice {

class Mutex;

// Builds for tests look at the order in which each thread takes its locks. One that takes a lock of no later rank than
// one that it has could wait for a thread that waits for it: it says so, with both ranks, and ends the program. In
// other builds nothing is compiled of this.
class LockOrder {
  public:
#ifdef CUSLICE_CHECK_LOCK_ORDER
    static constexpr bool kChecked = true;
#else
    static constexpr bool kChecked = false;
#endif
    // This thread is about to wait for a lock; has one, without having waited; has given one back.
    static void taking(const Mutex* mutex, LockRank rank);
    static void took(const Mutex* mutex, LockRank rank);
    static void gave_back(const Mutex* mutex);
    // It has left whatever it was doing by a longjmp, and has no lock any more.
    static void left();
    // From now on a lock is also refused to a thread that can be cancelled asynchronously, unless `held_back` says that
    // its cancellation waits in another way; and one that is held over calls of the driver or the kernel, to a thread
    // whose cancellation isn't disabled.
    static void watch_cancellation(bool (*held_back)());
};

}  // namespace cuslice
