// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <optional>

#include "policy/base/mutex.h"
#include "virtual_gpu/cache/quiescence.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

/// Marks in the work that this process has given to its contexts: the GPUs come past them one after the other. A mark
/// is one event in each context. Thread-safe; no lock is held over a call of the driver's.
class QueuedWork {
  public:
    /// The events and the captures are the process's.
    explicit constexpr QueuedWork(Quiescence& process) : process_(process) {}

    /// Marks the end of all that has been given so far. `launch`: number of the last one. False: there are as many
    /// marks as there may be, a stream is being captured, which a mark would end, or the driver has no such events.
    bool mark(uint64_t launch);
    /// The last mark that the GPUs have come past, if that is another one than before. One thread asks.
    std::optional<uint64_t> passed();
    /// True if they haven't come past the last one.
    bool any() const { return count_.load() != 0; }
    /// Waits until all work that there is has run out, without a mark. False: it can't be waited for.
    bool wait_for_all();
    /// Drops all marks.
    void drop();

    /// True if the driver can mark its work: CUDA 12.5.
    static bool can_mark() { return driver_slot(Function::cuCtxRecordEvent); }

  private:
    static constexpr unsigned kMarks = 4;
    static constexpr unsigned kMostContexts = 4 * Fences::kMaxContexts;
    struct Mark {
        uint64_t launch;
        Fence fences[kMostContexts / Fences::kMaxContexts];
    };
    bool make(Mark* mark);
    bool is_passed(Mark& mark);
    void drop(const Mark& mark);

    Quiescence& process_;
    Mutex mutex_{LockRank::queued_work};
    Mark marks_[kMarks] CUSLICE_GUARDED_BY(mutex_) = {};  // oldest first
    std::atomic<unsigned> count_{0};
};

}  // namespace cuslice
