#pragma once
#include <atomic>

#include "policy/allocator/backing.h"
#include "policy/allocator/records.h"
#include "policy/mutex.h"
#include "policy/page_vector.h"
#include "virtual_gpu/contexts.h"

namespace cuslice {

// Points in the work of all contexts of the process, each made of one event a context. Every context counts: one may
// reach another's memory, as a peer or by a copy that names no context. Thread-safe; no lock is held over a call of the
// driver.
class Fences {
  public:
    // 0 if none can be made: the driver is older than CUDA 12.5, or there are more contexts than kMostContexts.
    Fence make(Contexts& contexts);
    // See Backing::passed.
    bool passed(Fence fence, bool wait);
    void drop(Fence fence);
    // A context has ended, and its events with it.
    void context_ended(CUcontext context);

    Mutex& mutex() { return mutex_; }

  private:
    static constexpr std::size_t kMostContexts = 16;
    struct Mark {
        CUcontext context;
        CUevent event;
    };
    struct Point {
        Point *next = nullptr, *previous = nullptr;
        std::size_t count = 0;
        std::atomic<CUevent> last{nullptr};  // of the marks; readable without the lock by whoever has the fence
        Mark marks[kMostContexts];

        void add(const Mark& mark) {
            marks[count++] = mark;
            last.store(mark.event, std::memory_order_relaxed);
        }
        // Order is not kept.
        void remove_at(std::size_t i) {
            marks[i] = marks[--count];
            last.store(count ? marks[count - 1].event : nullptr, std::memory_order_relaxed);
        }
    };
    CUevent spare_event(CUcontext context);
    static CUevent make_event(CUcontext context);
    void recycle(Point* point);

    Mutex mutex_;
    Records<Point> points_;
    Point* first_ = nullptr;  // those that are out
    PageVector<Mark> spare_;  // events that nobody uses
};

}  // namespace cuslice
