// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>

#include <atomic>
#include <cstdint>

namespace cuslice {

// A lock that one thread, its owner, takes all the time and others hardly ever. For the owner it costs two stores and a
// load; whoever else wants it makes the kernel run a barrier in every thread of the process (membarrier), and waits
// until the owner is out. Where the kernel has no such call, or refuses it later (a sandbox), the owner pays for an
// atomic exchange.
//
// The owner holds it for some instructions only, in which it takes no other lock and makes no call.
class OwnerLock {
  public:
    OwnerLock() : OwnerLock(asked_to_exchange()) {}

    // The owner. False: another thread has it; go another way.
    bool enter() {
        held_.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const uint32_t asked = asked_.load(std::memory_order_seq_cst);
        return asked == kNothing || enter_slowly(asked);
    }
    void leave() { held_.store(0, std::memory_order_release); }

    // Others, one at a time. Of many locks at once: each is demanded, then comes one barrier for all of them, and then
    // each is had, or not: its owner does not come out, as it was ended in there. Whatever was demanded is restored.
    class Barrier {
      public:
        void demand(OwnerLock& lock) {
            lock.asked_.store(kRevoked | lock.asked_to_exchange(), std::memory_order_seq_cst);
            unsure_ = unsure_ || !lock.exchanges_.load(std::memory_order_acquire);
        }
        void run();

      private:
        bool unsure_ = false;  // some owner has not been seen to exchange
    };
    bool had();
    void restore() { asked_.store(asked_to_exchange(), std::memory_order_release); }

    // One alone.
    bool revoke() {
        Barrier barrier;
        barrier.demand(*this);
        barrier.run();
        if (had())
            return true;
        restore();
        return false;
    }

    // In a forked child, whose one thread is in no lock.
    void reset() {
        held_.store(0, std::memory_order_relaxed);
        asked_.store(asked_to_exchange(), std::memory_order_relaxed);
    }

    // Once before the first use, and again in a forked child. Thread-safe.
    static void prepare();

    // For what is built on the same asymmetry, beside these locks. False: both sides pay for an atomic exchange.
    static bool asymmetric() { return asymmetric_.load(std::memory_order_relaxed); }
    // A barrier in every thread of the process. False: the kernel refuses it, from now on; a store that a thread made
    // before it knew that is to be seen after a pause.
    static bool barrier_in_all();

    // How often the kernel has been asked for a barrier.
    static uint64_t barriers() { return barriers_.load(std::memory_order_relaxed); }

  private:
    static constinit std::atomic<bool> asymmetric_;
    static constinit std::atomic<uint64_t> barriers_;

    // Others' requests to the owner, which looks at nothing else: to stay out, and to exchange from then on.
    enum : uint32_t { kNothing = 0, kRevoked = 1, kExchange = 2 };
    static uint32_t asked_to_exchange() { return asymmetric() ? kNothing : kExchange; }
    // Asked once: the kernel may refuse its barrier at any moment.
    explicit OwnerLock(uint32_t asked) : asked_(asked), exchanges_(asked == kExchange) {}
    [[gnu::cold, gnu::noinline]] bool enter_slowly(uint32_t asked);

    std::atomic<uint32_t> held_{0}, asked_;
    std::atomic<bool> exchanges_;  // the owner does; all that it did before it began to is seen with it
};

}  // namespace cuslice
