// SPDX-License-Identifier: Apache-2.0
// How a thread may be cancelled: held back for a while, and then as the thread had it.
#include "policy/base/cancellation.h"

#include "policy/base/mutex.h"
#include "tests/catch.h"

namespace cuslice {
namespace {

struct Cancelled {
    int type = 0, state = 0;
    bool operator==(const Cancelled&) const = default;
};

Cancelled set(const Cancelled& wanted) {
    Cancelled before;
    pthread_setcancelstate(wanted.state, &before.state);
    pthread_setcanceltype(wanted.type, &before.type);
    return before;
}

Cancelled now() {
    const Cancelled seen = set({PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_DISABLE});
    set(seen);
    return seen;
}

}  // namespace

TEST_CASE("cancellation is held back, whatever its kind, and afterwards is what the thread had chosen") {
    const Cancelled chosen{GENERATE(int{PTHREAD_CANCEL_DEFERRED}, int{PTHREAD_CANCEL_ASYNCHRONOUS}),
                           GENERATE(int{PTHREAD_CANCEL_ENABLE}, int{PTHREAD_CANCEL_DISABLE})};
    const Cancelled nothing{PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_DISABLE};
    // Looked at before Catch2 is asked, which is not to be cancelled anywhere.
    const Cancelled usual = set(chosen);
    Mutex mutex{LockRank::segment_heap};
    Cancelled disabled, deferred, inside, again, locked;
    {
        const DisableCancellation disable;
        disabled = now();
    }
    const Cancelled after_disabled = now();
    {
        const DeferCancellation defer;
        deferred = now();
        {
            const DisableCancellationState in_the_kernel;
            inside = now();
        }
        again = now();
    }
    const Cancelled after_deferred = now();
    {
        const LockGuard lock(mutex);
        locked = now();
    }
    const Cancelled after_locked = set(usual);
    CAPTURE(chosen.type, chosen.state);
    CHECK(disabled == nothing);
    CHECK(after_disabled == chosen);
    CHECK(deferred == Cancelled{PTHREAD_CANCEL_DEFERRED, chosen.state});
    CHECK(inside == nothing);
    CHECK(again == deferred);
    CHECK(after_deferred == chosen);
    CHECK(locked == deferred);
    CHECK(after_locked == chosen);
}

}  // namespace cuslice
