#include "virtual_gpu/contexts.h"

namespace cuslice {

Contexts::Entry* Contexts::find(CUcontext context) {
    for (Entry& entry : entries_)
        if (entry.context == context) return &entry;
    return nullptr;
}

void Contexts::created(CUcontext context, CUdevice device) {
    LockGuard lock(mutex_);
    if (Entry* known = find(context))
        *known = {context, device, 1};  // the handle of one that ended behind our back
    else
        entries_.push_back({context, device, 1});
}

void Contexts::attached(CUcontext context) {
    LockGuard lock(mutex_);
    if (Entry* entry = find(context)) entry->uses++;
}

bool Contexts::last_use(CUcontext context) {
    LockGuard lock(mutex_);
    const Entry* entry = find(context);
    return entry && entry->uses == 1;
}

void Contexts::detached(CUcontext context) {
    LockGuard lock(mutex_);
    Entry* entry = find(context);
    if (entry && --entry->uses == 0) entries_.remove_at(static_cast<std::size_t>(entry - entries_.begin()));
}

void Contexts::destroyed(CUcontext context) {
    LockGuard lock(mutex_);
    if (Entry* entry = find(context)) entries_.remove_at(static_cast<std::size_t>(entry - entries_.begin()));
}

CUdevice Contexts::device_of(CUcontext context) {
    LockGuard lock(mutex_);
    const Entry* entry = find(context);
    return entry ? entry->device : -1;
}

}  // namespace cuslice
