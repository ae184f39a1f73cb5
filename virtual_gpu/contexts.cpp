#include "virtual_gpu/contexts.h"

namespace cuslice {

Contexts::Entry* Contexts::find(CUcontext context) {
    for (Entry& entry : entries_)
        if (entry.context == context) return &entry;
    return nullptr;
}

Contexts::Id Contexts::id_of(CUcontext context, CUdevice device) {
    LockGuard lock(mutex_);
    Entry* entry = find(context);
    if (!entry && (entry = find(nullptr))) *entry = {context, device, 1};
    if (!entry && entries_.size() < 0xffff && entries_.push_back({context, device, 1})) entry = entries_.end() - 1;
    return entry ? static_cast<Id>(entry - entries_.begin() + 1) : Id{0};
}

Contexts::Id Contexts::known_id(CUcontext context) {
    LockGuard lock(mutex_);
    const Entry* entry = context ? find(context) : nullptr;
    return entry ? static_cast<Id>(entry - entries_.begin() + 1) : Id{0};
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
    if (Entry* entry = find(context)) entry->uses--;
}

void Contexts::ended(CUcontext context) {
    LockGuard lock(mutex_);
    if (Entry* entry = context ? find(context) : nullptr) *entry = {};
}

CUdevice Contexts::device_of(CUcontext context) {
    LockGuard lock(mutex_);
    const Entry* entry = context ? find(context) : nullptr;
    return entry ? entry->device : -1;
}

}  // namespace cuslice
