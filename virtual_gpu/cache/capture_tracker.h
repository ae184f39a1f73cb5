// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "policy/base/event_count.h"
#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/cache/capture_askers.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The streams that are being captured into a graph. As long as there is one, nothing may be waited for and no event be
// recorded: it would fail and end the capture. Thread-safe.
//
// A stream is known by its handle, whatever context is current. The default streams have the same handles everywhere:
// of them only the one of each thread can be captured, and it is known by its thread and context.
class CaptureTracker {
  public:
    // True if a capture may be under way: one that was seen to begin is assumed to go on until it is seen to end.
    bool any() { return !none_known() && any_still(false); }
    // The driver is asked of each of them: before memory is refused, or where it costs little.
    bool any_for_sure() { return !none_known() && any_still(true); }
    // There is none; nobody need be asked. Costs a load.
    bool none_known() const { return count_.load(std::memory_order_acquire) == 0; }

    // A capture is about to begin, or to fail to. By a function that isn't known, it may end by another one: whether it
    // goes on is asked of the driver each time.
    enum class By : bool { known, unknown };
    //
    // Waits for the threads that call the driver where a capture forbids it (Asking): for `patience` at most, as what
    // they wait for may be this thread's to do. It holds no lock meanwhile.
    void may_begin(CUstream stream, By function);
    static constexpr uint64_t kPatience = 5'000'000'000;  // nanoseconds
    void set_patience(uint64_t nanoseconds) { patience_ = nanoseconds; }
    // The outcome of a call announced by may_begin().
    void began(CUstream stream);
    void failed(CUstream stream);

    // The moment before a call that may end a capture: a later one of the same stream, or of another that gets its
    // handle, is not ended by it.
    uint64_t moment() {
        LockGuard lock(mutex_);
        return last_;
    }
    void ended(CUstream stream, uint64_t moment);
    void context_ended(CUcontext context) {
        remove([&](const Entry& entry) { return entry.context == context; });
    }

    // Around the driver's end of a stream, after which its handle is nobody's to ask about: waits for other threads
    // that are just asking, and keeps new ones from it.
    void ends(CUstream stream);
    void ended_or_not(CUstream stream, bool has_ended, uint64_t moment);
    // Nothing is known of any stream, and nobody asks about one. Costs two loads.
    bool none_asked() const { return none_known() && asking_.load(std::memory_order_acquire) == 0; }

    // Stands around a call of the driver's that a capture forbids, or that would end it. No capture begins that a hook
    // sees until this ends; so nothing is waited for in here but the driver. False: a stream is being captured.
    class Asking {
      public:
        enum class Sure : bool { no, yes };  // as any() or any_for_sure()
        Asking(CaptureTracker& captures, Sure sure) : captures_(captures), is_in_(captures.enter(sure)) {}
        ~Asking() {
            if (is_in_)
                captures_.leave();
        }
        Asking(const Asking&) = delete;
        Asking& operator=(const Asking&) = delete;

        explicit operator bool() const { return is_in_; }

      private:
        CaptureTracker& captures_;
        const bool is_in_;
    };
    // The same by hand where nothing is known of any capture, for what is called most. False: go by Asking.
    using Inside = CaptureAskers::Asker;
    static bool enter_at_once(Inside** inside) { return CaptureAskers::enter_at_once(inside); }
    static void leave_at_once(Inside* inside) { CaptureAskers::leave_at_once(inside); }
    // This thread may do that from now on. True if thread_ends() is to be called at its end.
    bool list_thread();
    void thread_ends();

    // After a longjmp: this thread no longer asks the driver anything.
    void forget_own();
    // In a forked child, whose one thread asks nothing.
    void forget_all();

  private:
    struct Entry {
        CUstream stream;
        CUcontext context;   // the stream's
        const void* thread;  // that begins it
        uint64_t moment;     // in which it was about to begin last
        By function;
        bool seen = false;    // it has begun: the driver has said so
        bool ending = false;  // and its stream with it
        bool is(const Entry& other) const;
    };
    // A stream whose handle a thread has given to the driver, outside the lock.
    struct Asked {
        CUstream stream;
        uintptr_t thread;
    };
    static Entry entry_of(CUstream stream);
    void note(Entry* entry) CUSLICE_REQUIRES(mutex_);
    bool enter_if_none();
    bool enter(Asking::Sure sure);
    void leave();
    bool others_inside();
    void wait_for_askers();
    void drop_own() CUSLICE_REQUIRES(mutex_);
    bool any_still(bool for_sure);
    bool goes_on(const Entry& entry);
    void note_seen(const Entry& entry);
    bool is_noted(const Entry& entry);
    template <typename Which>
    void remove(Which which) {
        if (count_.load(std::memory_order_acquire) == 0)
            return;
        LockGuard lock(mutex_);
        for (size_t i = streams_.size(); i-- > 0;)
            if (which(streams_[i]))
                streams_.remove_at(i);
        count_.store(streams_.size(), std::memory_order_release);
        if (streams_.size() == 0)
            askers_.let_in();
    }
    Mutex mutex_{LockRank::captures};
    PageVector<Entry> streams_ CUSLICE_GUARDED_BY(mutex_);
    PageVector<Asked> asked_ CUSLICE_GUARDED_BY(mutex_);
    EventCount answers_;
    CaptureAskers askers_ CUSLICE_GUARDED_BY(mutex_);
    uint64_t patience_ = kPatience;
    uint64_t last_ CUSLICE_GUARDED_BY(mutex_) = 0;
    std::atomic<size_t> count_{0}, asking_{0};
};

}  // namespace cuslice
