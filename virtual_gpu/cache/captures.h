#pragma once
#include <atomic>

#include "policy/mutex.h"
#include "policy/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The streams that are being captured into a graph. As long as there is one, nothing may be waited for and no event be
// recorded: it would fail and end the capture. Thread-safe.
class Captures {
  public:
    bool any() { return !none_known() && any_still(); }
    // There is none; nobody need be asked. Costs a load.
    bool none_known() const { return count_.load(std::memory_order_acquire) == 0; }

    void began(CUstream stream, CUcontext context) {
        LockGuard lock(mutex_);
        if (streams_.push_back({stream, context, nullptr})) count_.store(streams_.size(), std::memory_order_release);
    }
    // One is about to begin by a function that isn't known, or to fail, and may end by another one: whether it goes on
    // is asked of the driver each time.
    void may_begin(CUstream stream, CUcontext context);
    // Of one that may have been captured.
    void ended(CUstream stream, CUcontext context) {
        remove([&](const Entry& entry) { return entry.stream == stream && entry.context == context; });
    }
    void context_ended(CUcontext context) {
        remove([&](const Entry& entry) { return entry.context == context; });
    }

    Mutex& mutex() { return mutex_; }

  private:
    struct Entry {
        CUstream stream;
        CUcontext context;   // the default streams have the same handles in each
        const void* thread;  // that begins it by a function that isn't known; null: it is seen how it ends
        bool seen = false;   // of one by such a function: the driver has said that it goes on
        bool is(const Entry& other) const {
            return stream == other.stream && context == other.context && thread == other.thread;
        }
    };
    bool any_still();
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
    Mutex mutex_;
    PageVector<Entry> streams_;
    std::atomic<std::size_t> count_{0};
};

}  // namespace cuslice
