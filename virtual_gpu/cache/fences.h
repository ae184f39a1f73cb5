// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <optional>

#include "policy/allocator/backing.h"
#include "policy/allocator/records.h"
#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/cache/thread_events.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Points in the work of contexts, each made of one event a context. Thread-safe; no lock is held over a call of the
// driver.
class Fences {
  public:
    static constexpr size_t kMaxContexts = 16;

    // A fence for up to kMaxContexts contexts. 0 if none can be made: the driver is older than CUDA 12.5.
    Fence make(const CUcontext* contexts, size_t count);
    // The same for one context, asking at once. See Backing::past.
    bool past(CUcontext context, Fence* fence);
    // See Backing::passed.
    bool passed(Fence fence, bool wait);
    // The reason of the last false: CUDA_ERROR_NOT_READY, or an error of a context's, which may stay. Nobody can tell
    // then if the GPUs will ever come past it.
    CUresult why_not_passed(Fence fence);
    void drop(Fence fence);
    // A context has ended, and its events with it.
    void context_ended(CUcontext context);
    // This thread ends: what it kept is to spare for others.
    void thread_ends();

  private:
    struct Mark {
        CUcontext context;
        CUevent event;
    };
    struct Point {
        Point *next = nullptr, *previous = nullptr;
        size_t count = 0;
        CUresult why_not_passed = CUDA_SUCCESS;
        std::atomic<CUevent> last{nullptr};  // of the marks; readable without the lock by whoever has the fence
        Mark marks[kMaxContexts];

        void add(const Mark& mark) {
            marks[count++] = mark;
            last.store(mark.event, std::memory_order_relaxed);
        }
        bool has(CUevent event) const {
            for (size_t i = 0; i < count; i++)
                if (marks[i].event == event)
                    return true;
            return false;
        }
        // Order is not kept.
        void remove_at(size_t i) {
            marks[i] = marks[--count];
            last.store(count ? marks[count - 1].event : nullptr, std::memory_order_relaxed);
        }
    };
    CUevent spare_event(CUcontext context) CUSLICE_REQUIRES(mutex_);
    bool keep(ThreadEvents::Place* place, const Mark& mark, uint64_t ended);
    bool record_new(Point* point, CUcontext context);
    bool record_spare(Point* point, const Mark& mark);
    std::optional<CUresult> ask(Point* point, CUevent event, bool wait, bool alone);
    void link(Point* point) CUSLICE_REQUIRES(mutex_);
    void recycle(Point* point) CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::fences};
    Records<Point> points_ CUSLICE_GUARDED_BY(mutex_);
    Point* first_ CUSLICE_GUARDED_BY(mutex_) = nullptr;  // those that are out
    PageVector<Mark> spare_ CUSLICE_GUARDED_BY(mutex_);  // events that nobody uses, beside those of own_events_
    ThreadEvents own_events_;
    std::atomic<uint64_t> ended_{0};  // contexts; counted before their events are looked for
};

}  // namespace cuslice
