// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/fences.h"

#include "virtual_gpu/gpu/current_context.h"

namespace cuslice {

// With the lock held. Null if there is none to spare.
CUevent Fences::spare_event(CUcontext context) {
    for (size_t i = spare_.size(); i-- > 0;) {
        if (spare_[i].context != context)
            continue;
        const CUevent event = spare_[i].event;
        spare_.remove_at(i);
        return event;
    }
    return nullptr;
}

// Records one for what has been given to the context so far, and has it in the point. False if it can't be had: the
// context is ending, or captures.
bool Fences::record_new(Point* point, CUcontext context) {
    const CurrentContext during(context);
    CUevent event = nullptr;
    if (!during || CUSLICE_REAL(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return false;
    const bool recorded = CUSLICE_REAL(cuCtxRecordEvent)(context, event) == CUDA_SUCCESS;
    UncancelledLockGuard lock(mutex_);
    point->add({context, event});
    return recorded;
}

// The same with one that the point has already, unless it has ended with its context.
bool Fences::record_spare(Point* point, const Mark& mark) {
    const NamedContext during(mark.context);
    if (!during)
        return false;
    if (during.visiting()) {
        UncancelledLockGuard lock(mutex_);
        if (!point->has(mark.event))
            return false;
    }
    return CUSLICE_REAL(cuCtxRecordEvent)(mark.context, mark.event) == CUDA_SUCCESS;
}

Fence Fences::make(const CUcontext* contexts, size_t count) {
    if (!driver_slot(Function::cuCtxRecordEvent) || count == 0)
        return 0;
    Mark marks[kMaxContexts];
    Point* point = nullptr;
    {
        UncancelledLockGuard lock(mutex_);
        if (!(point = points_.take()))
            return 0;
        // With what it will have, for context_ended() to find.
        for (size_t i = 0; i < count; i++) {
            marks[i] = {contexts[i], spare_event(contexts[i])};
            if (marks[i].event)
                point->add(marks[i]);
        }
        link(point);
    }
    for (size_t i = 0; i < count; i++) {
        if (marks[i].event ? record_spare(point, marks[i]) : record_new(point, marks[i].context))
            continue;
        drop(reinterpret_cast<Fence>(point));
        return 0;
    }
    return reinterpret_cast<Fence>(point);
}

// False if a context has ended since `ended`, and the event maybe with it: nobody uses it again. `place`: where threads
// keep one without waiting for each other; there may be none.
bool Fences::keep(ThreadEvents::Place* place, const Mark& mark, uint64_t ended) {
    if (place && place->keep(mark.context, mark.event)) [[likely]] {
        if (ended == ended_.load(std::memory_order_seq_cst)) [[likely]]
            return true;
        place->drop();
        return false;
    }
    UncancelledLockGuard lock(mutex_);
    if (ended != ended_.load(std::memory_order_relaxed))
        return false;
    spare_.push_back(mark);
    return true;
}

// Mostly the GPU has come past it already, and there need be no point. In this thread's own context the event is in
// no list meanwhile: should a context end, it may have gone with it, and nobody uses it again.
bool Fences::past(CUcontext context, Fence* fence) {
    const uint64_t ended = ended_.load(std::memory_order_seq_cst);
    ThreadEvents::Place* const place = own_events_.place();
    CUevent event = nullptr;
    if (is_own(context)) {
        if (place)
            event = place->take(context);
        if (!event) {
            UncancelledLockGuard lock(mutex_);
            event = spare_event(context);
        }
    }
    if (!event) {
        *fence = make(&context, 1);
        if (!*fence || !passed(*fence, false))
            return false;
        *fence = 0;
        return true;
    }
    const bool recorded = CUSLICE_REAL(cuCtxRecordEvent)(context, event) == CUDA_SUCCESS;
    *fence = 0;
    if (recorded && CUSLICE_REAL(cuEventQuery)(event) == CUDA_SUCCESS)
        return keep(place, {context, event}, ended);
    UncancelledLockGuard lock(mutex_);
    if (ended != ended_.load(std::memory_order_relaxed))
        return false;
    if (Point* const point = recorded ? points_.take() : nullptr) {
        point->add({context, event});
        link(point);
        *fence = reinterpret_cast<Fence>(point);
    } else {
        spare_.push_back({context, event});
    }
    return false;
}

// Asks the driver about `event`, the point's last one. Nothing if the event's context has ended. `alone`: this thread's
// own context was the only one before the event was read, so that it is of that one.
std::optional<CUresult> Fences::ask(Point* point, CUevent event, bool wait, bool alone) {
    const auto ask = [&] { return wait ? CUSLICE_REAL(cuEventSynchronize)(event) : CUSLICE_REAL(cuEventQuery)(event); };
    if (alone) [[likely]]
        return ask();
    CUcontext context = nullptr;
    {
        UncancelledLockGuard lock(mutex_);
        if (point->last.load(std::memory_order_relaxed) != event)
            return {};
        context = point->marks[point->count - 1].context;
    }
    const NamedContext during(context);
    if (!during)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    {
        UncancelledLockGuard lock(mutex_);
        if (!point->has(event))
            return {};
    }
    return ask();
}

bool Fences::passed(Fence fence, bool wait) {
    auto* point = reinterpret_cast<Point*>(fence);
    for (;;) {
        // First: a context is not counted any more only after its events are forgotten here.
        const bool alone = is_own(gpu_state().contexts.sole());
        const CUevent event = point->last.load(std::memory_order_relaxed);
        const std::optional<CUresult> result = event ? ask(point, event, wait, alone) : CUDA_SUCCESS;
        UncancelledLockGuard lock(mutex_);
        // Its context may have ended meanwhile.
        if (!result || point->last.load(std::memory_order_relaxed) != event)
            continue;
        if (*result != CUDA_SUCCESS) {
            point->why_not_passed = *result;
            return false;
        }
        if (event) {
            if (!spare_.push_back(point->marks[point->count - 1]))
                CUSLICE_REAL(cuEventDestroy_v2)(event);
            point->remove_at(point->count - 1);
        }
        if (point->count)
            continue;
        recycle(point);
        return true;
    }
}

CUresult Fences::why_not_passed(Fence fence) {
    UncancelledLockGuard lock(mutex_);
    return reinterpret_cast<Point*>(fence)->why_not_passed;
}

void Fences::drop(Fence fence) {
    UncancelledLockGuard lock(mutex_);
    recycle(reinterpret_cast<Point*>(fence));
}

// With the lock held.
void Fences::link(Point* point) {
    point->next = first_;
    if (first_)
        first_->previous = point;
    first_ = point;
}

// With the lock held. Events that the GPU has not come past can be recorded again all the same.
void Fences::recycle(Point* point) {
    for (size_t i = 0; i < point->count; i++)
        spare_.push_back(point->marks[i]);
    if (point->next)
        point->next->previous = point->previous;
    (point->previous ? point->previous->next : first_) = point->next;
    points_.give_back(point);
}

void Fences::context_ended(CUcontext context) {
    LockGuard lock(mutex_);
    ended_.fetch_add(1, std::memory_order_seq_cst);
    own_events_.context_ended(context);
    for (Point* point = first_; point; point = point->next) {
        for (size_t i = point->count; i-- > 0;)
            if (point->marks[i].context == context)
                point->remove_at(i);
    }
    for (size_t i = spare_.size(); i-- > 0;)
        if (spare_[i].context == context)
            spare_.remove_at(i);
}

void Fences::thread_ends() {
    own_events_.thread_ends([this](CUcontext context, CUevent event) {
        LockGuard lock(mutex_);
        spare_.push_back({context, event});
    });
}

}  // namespace cuslice
