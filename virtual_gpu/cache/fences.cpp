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

Fence Fences::make(Contexts& contexts) {
    if (!driver_slot(Function::cuCtxRecordEvent)) return 0;
    Mark marks[kMostContexts];
    CUcontext there[kMostContexts];
    std::size_t count = 1, made = 0;
    if (!(there[0] = contexts.sole())) count = contexts.list(there, kMostContexts);
    if (count == 0 || count > kMostContexts) return 0;
    Point* point = nullptr;
    {
        LockGuard lock(mutex_);
        point = points_.take();
        for (std::size_t i = 0; i < count; i++) marks[i] = {there[i], spare_event(there[i])};
    }
    while (made < count) {
        Mark& mark = marks[made];
        if (!mark.event) mark.event = make_event(mark.context);
        if (!point || !mark.event || CUSLICE_REAL(cuCtxRecordEvent)(mark.context, mark.event) != CUDA_SUCCESS) break;
        made++;
    }
    LockGuard lock(mutex_);
    if (made < count) {
        for (std::size_t i = 0; i < count; i++)
            if (marks[i].event) spare_.push_back(marks[i]);
        if (point) points_.give_back(point);
        return 0;
    }
    for (std::size_t i = 0; i < count; i++) point->marks[i] = marks[i];
    point->count = count;
    point->next = first_;
    if (first_) first_->previous = point;
    first_ = point;
    return reinterpret_cast<Fence>(point);
}

bool Fences::passed(Fence fence, bool wait) {
    auto* point = reinterpret_cast<Point*>(fence);
    for (;;) {
        CUevent event = nullptr;
        {
            LockGuard lock(mutex_);
            if (!point->count) {
                recycle(point);
                return true;
            }
            event = point->marks[point->count - 1].event;
        }
        const CUresult result = wait ? CUSLICE_REAL(cuEventSynchronize)(event) : CUSLICE_REAL(cuEventQuery)(event);
        LockGuard lock(mutex_);
        // Its context may have ended meanwhile.
        if (!point->count || point->marks[point->count - 1].event != event) continue;
        if (result != CUDA_SUCCESS) return false;
        if (!spare_.push_back(point->marks[point->count - 1])) CUSLICE_REAL(cuEventDestroy_v2)(event);
        point->count--;
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
            if (point->marks[i].context == context) point->marks[i] = point->marks[--point->count];
    }
    for (std::size_t i = spare_.size(); i-- > 0;)
        if (spare_[i].context == context) spare_.remove_at(i);
}

}  // namespace cuslice
