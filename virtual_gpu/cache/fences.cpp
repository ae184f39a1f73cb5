#include "virtual_gpu/cache/fences.h"

#include "virtual_gpu/cache/current_context.h"

namespace cuslice {

// With the lock held. Null if there is none to spare.
CUevent Fences::spare_event(CUcontext context) {
    for (std::size_t i = spare_.size(); i-- > 0;) {
        if (spare_[i].context != context) continue;
        const CUevent event = spare_[i].event;
        spare_.remove_at(i);
        return event;
    }
    return nullptr;
}

CUevent Fences::make_event(CUcontext context) {
    const CurrentContext current(context);
    CUevent event = nullptr;
    return current && CUSLICE_REAL(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event : nullptr;
}

Fence Fences::make(const CUcontext* contexts, std::size_t count) {
    if (!driver_slot(Function::cuCtxRecordEvent) || count == 0) return 0;
    Mark marks[kMostContexts];
    Point* point = nullptr;
    {
        LockGuard lock(mutex_);
        if (!(point = points_.take())) return 0;
        // With what it will have, for context_ended() to find.
        for (std::size_t i = 0; i < count; i++) {
            marks[i] = {contexts[i], spare_event(contexts[i])};
            if (marks[i].event) point->add(marks[i]);
        }
        point->next = first_;
        if (first_) first_->previous = point;
        first_ = point;
    }
    for (std::size_t i = 0; i < count; i++) {
        const bool spare = marks[i].event;
        if (!spare) marks[i].event = make_event(marks[i].context);
        const bool recorded =
            marks[i].event && CUSLICE_REAL(cuCtxRecordEvent)(marks[i].context, marks[i].event) == CUDA_SUCCESS;
        if (recorded && spare) continue;
        LockGuard lock(mutex_);
        if (!spare && marks[i].event) point->add(marks[i]);
        if (recorded) continue;
        recycle(point);
        return 0;
    }
    return reinterpret_cast<Fence>(point);
}

bool Fences::passed(Fence fence, bool wait) {
    auto* point = reinterpret_cast<Point*>(fence);
    for (;;) {
        const CUevent event = point->last.load(std::memory_order_relaxed);
        const CUresult result = !event ? CUDA_SUCCESS
                                : wait ? CUSLICE_REAL(cuEventSynchronize)(event)
                                       : CUSLICE_REAL(cuEventQuery)(event);
        LockGuard lock(mutex_);
        if (point->last.load(std::memory_order_relaxed) != event) continue;  // its context has ended meanwhile
        if (result != CUDA_SUCCESS) return false;
        if (event) {
            if (!spare_.push_back(point->marks[point->count - 1])) CUSLICE_REAL(cuEventDestroy_v2)(event);
            point->remove_at(point->count - 1);
        }
        if (point->count) continue;
        recycle(point);
        return true;
    }
}

void Fences::drop(Fence fence) {
    LockGuard lock(mutex_);
    recycle(reinterpret_cast<Point*>(fence));
}

// With the lock held. Events that the GPU has not come past can be recorded again all the same.
void Fences::recycle(Point* point) {
    for (std::size_t i = 0; i < point->count; i++) spare_.push_back(point->marks[i]);
    if (point->next) point->next->previous = point->previous;
    (point->previous ? point->previous->next : first_) = point->next;
    points_.give_back(point);
}

void Fences::context_ended(CUcontext context) {
    LockGuard lock(mutex_);
    for (Point* point = first_; point; point = point->next) {
        for (std::size_t i = point->count; i-- > 0;)
            if (point->marks[i].context == context) point->remove_at(i);
    }
    for (std::size_t i = spare_.size(); i-- > 0;)
        if (spare_[i].context == context) spare_.remove_at(i);
}

}  // namespace cuslice
