// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/turns/queued_work.h"

#include <algorithm>

#include "virtual_gpu/gpu/current_context.h"
#include "virtual_gpu/gpu/relaxed_captures.h"

namespace cuslice {

bool QueuedWork::make(Mark* mark) {
    CUcontext contexts[kMostContexts];
    const size_t all = gpu_state().contexts.list(contexts, kMostContexts);
    const size_t count = std::min<size_t>(all, kMostContexts);
    for (size_t i = 0; i < count; i += Fences::kMaxContexts) {
        Fence& fence = mark->fences[i / Fences::kMaxContexts];
        fence = process_.fences.make(contexts + i, std::min(count - i, Fences::kMaxContexts));
        if (!fence)
            return false;
    }
    return count != 0;
}

void QueuedWork::drop(const Mark& mark) {
    for (const Fence fence : mark.fences)
        if (fence)
            process_.fences.drop(fence);
}

bool QueuedWork::mark(uint64_t launch) {
    if (!can_mark() || count_.load() == kMarks)
        return false;
    const CaptureTracker::Asking asking(process_.captures, CaptureTracker::Asking::Sure::no);
    Mark made{launch, {}};
    bool kept = asking && make(&made);
    if (kept) {
        UncancelledLockGuard lock(mutex_);
        const unsigned count = count_.load();
        kept = count < kMarks;
        if (kept) {
            marks_[count] = made;
            count_.store(count + 1);
        }
    }
    if (!kept)
        drop(made);
    return kept;
}

// A context with an error that stays carries nothing out any more.
bool QueuedWork::is_passed(Mark& mark) {
    for (Fence& fence : mark.fences) {
        if (!fence)
            continue;
        if (!process_.fences.passed(fence, false)) {
            if (process_.fences.why_not_passed(fence) == CUDA_ERROR_NOT_READY)
                return false;
            process_.fences.drop(fence);
        }
        fence = 0;
    }
    return true;
}

std::optional<uint64_t> QueuedWork::passed() {
    std::optional<uint64_t> last;
    while (any()) {
        Mark first;
        {
            UncancelledLockGuard lock(mutex_);
            first = marks_[0];
        }
        const bool is_past = is_passed(first);
        UncancelledLockGuard lock(mutex_);
        marks_[0] = first;
        if (!is_past)
            return last;
        last = first.launch;
        const unsigned left = count_.load() - 1;
        std::copy(marks_ + 1, marks_ + 1 + left, marks_);
        count_.store(left);
    }
    return last;
}

void QueuedWork::drop() {
    while (any()) {
        Mark last;
        {
            UncancelledLockGuard lock(mutex_);
            const unsigned left = count_.load() - 1;
            last = marks_[left];
            count_.store(left);
        }
        drop(last);
    }
}

bool QueuedWork::wait_for_all() {
    const RelaxedCaptures relaxed;
    if (!relaxed)
        return false;
    CUcontext contexts[kMostContexts];
    const size_t count = std::min<size_t>(gpu_state().contexts.list(contexts, kMostContexts), kMostContexts);
    bool waited = true;
    for (size_t i = 0; i < count; i++) {
        const CurrentContext during(contexts[i]);
        waited = (!during || wait_by_free() == CUDA_SUCCESS) && waited;
    }
    return waited;
}

}  // namespace cuslice
