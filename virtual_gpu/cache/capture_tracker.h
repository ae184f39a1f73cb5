#pragma once
#include <atomic>

#include "policy/base/event_count.h"
#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The streams that are being captured into a graph. As long as there is one, nothing may be waited for and no event be
// recorded: it would fail and end the capture. Thread-safe.
//
// A stream is known by its handle, whatever context is current. The default streams have the same handles everywhere:
// of them only the one of each thread can be captured, and it is known by its thread and context.
class CaptureTracker {
  public:
    // Of captures that were seen to begin it is believed that they go on until they are seen to end.
    bool any() { return !none_known() && any_still(false); }
    // The driver is asked of each of them: before memory is refused, or where it costs little.
    bool any_for_sure() { return !none_known() && any_still(true); }
    // There is none; nobody need be asked. Costs a load.
    bool none_known() const { return count_.load(std::memory_order_acquire) == 0; }

    // A capture is about to begin, or to fail to. By a function that isn't known, it may end by another one: whether it
    // goes on is asked of the driver each time.
    enum class By : bool { known, unknown };
    void may_begin(CUstream stream, By function);
    // What has become of it.
    void began(CUstream stream);
    void failed(CUstream stream);

    // The moment before a call that may end a capture: a later one of the same stream, or of another that gets its
    // handle, is not ended by it.
    std::uint64_t moment() {
        LockGuard lock(mutex_);
        return last_;
    }
    void ended(CUstream stream, std::uint64_t moment);
    void context_ended(CUcontext context) {
        remove([&](const Entry& entry) { return entry.context == context; });
    }

    // Around the driver's end of a stream, after which its handle is nobody's to ask about: waits for other threads
    // that are just asking, and keeps new ones from it.
    void ends(CUstream stream);
    void ended_or_not(CUstream stream, bool has_ended, std::uint64_t moment);
    // Nothing is known of any stream, and nobody asks about one. Costs two loads.
    bool none_asked() const { return none_known() && asking_.load(std::memory_order_acquire) == 0; }

    // Whatever this thread was asking, it has left (by a longjmp).
    void forget_own();
    // In a forked child, whose one thread asks nothing.
    void forget_all();

  private:
    struct Entry {
        CUstream stream;
        CUcontext context;     // the stream's
        const void* thread;    // that begins it
        std::uint64_t moment;  // in which it was about to begin last
        By function;
        bool seen = false;    // it has begun: the driver has said so
        bool ending = false;  // and its stream with it
        bool is(const Entry& other) const;
    };
    // Which stream's handle a thread has given to the driver, without the lock.
    struct Asked {
        CUstream stream;
        std::uintptr_t thread;
    };
    static Entry entry_of(CUstream stream);
    void drop_own() CUSLICE_REQUIRES(mutex_);
    bool any_still(bool for_sure);
    bool goes_on(const Entry& entry);
    void note_seen(const Entry& entry);
    template <typename Which>
    void remove(Which which) {
        if (count_.load(std::memory_order_acquire) == 0) return;
        LockGuard lock(mutex_);
        for (std::size_t i = streams_.size(); i-- > 0;)
            if (which(streams_[i])) streams_.remove_at(i);
        count_.store(streams_.size(), std::memory_order_release);
    }
    Mutex mutex_{LockRank::captures};
    PageVector<Entry> streams_ CUSLICE_GUARDED_BY(mutex_);
    PageVector<Asked> asked_ CUSLICE_GUARDED_BY(mutex_);
    EventCount answers_;
    std::uint64_t last_ CUSLICE_GUARDED_BY(mutex_) = 0;
    std::atomic<std::size_t> count_{0}, asking_{0};
};

}  // namespace cuslice
