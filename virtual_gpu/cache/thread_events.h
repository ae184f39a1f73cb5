// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "policy/base/machine.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// One event a thread, which nobody waits for: a thread takes its own and puts it back without a lock, and in a cache
// line of its own. Threads beyond the first kThreads have none.
//
// Thread-safe. context_ended() may run beside everything else: an event that is kept at the same time is either found
// by it, or seen to have ended by its thread, which reads the count of ended contexts after keep().
class ThreadEvents {
  public:
    static constexpr size_t kThreads = 64;

    /// A thread's part of it. Only that thread calls its functions.
    class alignas(64) Place {
      public:
        /// Takes the kept event out, if it is of the context; else null.
        CUevent take(CUcontext context) {
            if (context_.load(std::memory_order_relaxed) != context)
                return nullptr;
            const CUevent event = event_.load(std::memory_order_relaxed);
            event_.store(nullptr, std::memory_order_relaxed);
            return event;
        }
        /// False: there is one.
        bool keep(CUcontext context, CUevent event) {
            if (event_.load(std::memory_order_relaxed))
                return false;
            context_.store(context, std::memory_order_relaxed);
            event_.store(event, std::memory_order_seq_cst);
            return true;
        }
        /// Forgets the event just kept, which has gone with its context.
        void drop() { event_.store(nullptr, std::memory_order_relaxed); }

      private:
        friend ThreadEvents;
        std::atomic<uintptr_t> thread_{0};  // 0: nobody's
        std::atomic<CUcontext> context_{nullptr};
        std::atomic<CUevent> event_{nullptr};
    };
    /// This thread's place. Null: other threads have all of them.
    Place* place() {
        Place* const place = own_;
        return place && is_own(*place) ? place : find_place();
    }

    /// The context's events are no more.
    void context_ended(CUcontext context) {
        for (Place& place : places_) {
            CUevent event = place.event_.load(std::memory_order_seq_cst);
            if (event && place.context_.load(std::memory_order_relaxed) == context)
                place.event_.compare_exchange_strong(event, nullptr, std::memory_order_relaxed);
        }
    }
    /// This thread has a place no more. What it kept goes to `use(context, event)`.
    template <typename Use>
    void thread_ends(Use use) {
        Place* const place = own_;
        if (!place || !is_own(*place))
            return;
        if (const CUevent event = place->event_.exchange(nullptr, std::memory_order_relaxed))
            use(place->context_.load(std::memory_order_relaxed), event);
        place->thread_.store(0, std::memory_order_release);
        own_ = nullptr;
    }

  private:
    // True unless the place is left over from another object of this class.
    bool is_own(const Place& place) const {
        return &place >= &places_[0] && &place < &places_[kThreads] &&
               place.thread_.load(std::memory_order_relaxed) == own_thread();
    }
    [[gnu::cold, gnu::noinline]] Place* find_place() {
        for (Place& place : places_) {
            uintptr_t nobody = 0;
            if (place.thread_.compare_exchange_strong(nobody, own_thread(), std::memory_order_acquire))
                return own_ = &place;
        }
        return nullptr;
    }

    Place places_[kThreads];
    static constinit inline thread_local Place* own_ = nullptr;
};

}  // namespace cuslice
