// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/event_count.h"
#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"

namespace cuslice {

// Visitors in contexts that are not their own, and contexts that are about to end.
//
// A program keeps a context alive as long as it works in it. Where cuslice enters one on its own account, from another
// thread (to wait for its work, to make an event or a segment there, or to give one back), the program knows nothing of
// it and may end the context at any moment; the driver forbids that while anybody is in there. So a visitor pins the
// context. Whoever ends one marks it first and waits for the pins to go; and a visitor of a context that is marked
// waits until it has ended, or lives on after all.
//
// A thread has one pin at most and waits for nothing but the driver while it has it, so nobody waits in a circle. What
// a thread has left without a word (by a longjmp out of a signal handler) is dropped when it comes back here.
// Thread-safe.
class Visits {
  public:
    // `what`: a context's handle, or whatever else stands for it. A visitor that `takes` memory is also kept apart from
    // the end of any other context: the driver could hand out that one's addresses before they are forgotten here.
    // False if this thread is ending it itself.
    bool enter(const void* what, bool takes = false);
    void leave();

    void begin_end(const void* what);
    void finish_end(const void* what);

    // After a longjmp: this thread is in no context any more.
    void forget_own();
    // In a forked child, whose one thread is in nothing.
    void forget_all();

  private:
    struct Pin {
        const void* what;
        uintptr_t thread;
        bool takes;
    };
    struct End {
        const void* what;
        uintptr_t thread;
    };
    void drop_pin(uintptr_t thread) CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::visits};
    PageVector<Pin> pins_ CUSLICE_GUARDED_BY(mutex_);
    PageVector<End> ends_ CUSLICE_GUARDED_BY(mutex_);
    EventCount changes_;
};

}  // namespace cuslice
