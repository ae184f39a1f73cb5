// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/contexts.h"

#include "virtual_gpu/driver/table.h"

namespace cuslice {

Contexts::Entry* Contexts::find(CUcontext context) {
    for (Entry& entry : entries_)
        if (entry.context == context)
            return &entry;
    return nullptr;
}

Contexts::Entry* Contexts::find_known(CUcontext context) { return context ? find(context) : nullptr; }

// Null if there are too many.
Contexts::Entry* Contexts::add(const Entry& entry) {
    if (Entry* free = find(nullptr)) {
        *free = entry;
        return free;
    }
    const bool room = entries_.size() < 0xffff && entries_.push_back(entry);
    return room ? entries_.end() - 1 : nullptr;
}

Contexts::Id Contexts::number_of(const Entry* entry) const {
    if (!entry)
        return 0;
    return entry->number ? entry->number : static_cast<Id>(entry - entries_.begin() + 1);
}

Contexts::Id Contexts::id_of(CUcontext context, CUdevice device) {
    LockGuard lock(mutex_);
    const Entry* entry = find(context);
    if (!entry)
        entry = add({context, device, 1, 0});
    count();
    return number_of(entry);
}

// With the lock held.
void Contexts::count() {
    CUcontext sole = nullptr;
    for (const Entry& entry : entries_) {
        if (!entry.is_context())
            continue;
        if (sole)
            return sole_.store(nullptr, std::memory_order_release);
        sole = entry.context;
    }
    sole_.store(sole, std::memory_order_release);
}

size_t Contexts::list(CUcontext* into, size_t most, CUdevice* devices) {
    LockGuard lock(mutex_);
    size_t there = 0;
    for (const Entry& entry : entries_) {
        if (!entry.is_context())
            continue;
        const size_t place = there++;
        if (place >= most)
            continue;
        into[place] = entry.context;
        if (devices)
            devices[place] = entry.device;
    }
    return there;
}

bool Contexts::any_on(CUdevice device) {
    LockGuard lock(mutex_);
    for (const Entry& entry : entries_)
        if (entry.context && entry.device == device)
            return true;
    return false;
}

CUcontext Contexts::handle_of(Id id) {
    LockGuard lock(mutex_);
    const bool given = id != 0 && id <= entries_.size();
    return given ? entries_[id - 1u].context : nullptr;
}

Contexts::Id Contexts::known_id(CUcontext context) {
    LockGuard lock(mutex_);
    return number_of(find_known(context));
}

void Contexts::add_name(CUcontext name, CUcontext context, CUdevice device) {
    LockGuard lock(mutex_);
    const Id number = number_of(find(context));
    if (number && !find(name))
        add({name, device, 1, number});
}

void Contexts::name_ended(CUcontext name) {
    LockGuard lock(mutex_);
    Entry* const entry = find_known(name);
    if (entry && entry->number)
        *entry = {};
}

bool Contexts::is_name(CUcontext context) {
    LockGuard lock(mutex_);
    const Entry* entry = find_known(context);
    return entry && entry->number;
}

void Contexts::attached(CUcontext context) {
    LockGuard lock(mutex_);
    if (Entry* entry = find(context))
        entry->uses++;
}

bool Contexts::give_up_use(CUcontext context) {
    LockGuard lock(mutex_);
    Entry* const entry = find_known(context);
    if (!entry)
        return true;
    if (entry->uses == 1)
        return false;
    entry->uses--;
    return true;
}

void Contexts::ended(CUcontext context) {
    LockGuard lock(mutex_);
    if (Entry* entry = find_known(context))
        *entry = {};
    count();
}

CUdevice Contexts::device_of(CUcontext context) {
    LockGuard lock(mutex_);
    const Entry* entry = find_known(context);
    return entry ? entry->device : -1;
}

CUdevice Contexts::device_of_stream(CUstream stream) {
    CUcontext context = nullptr;
    const CUresult known = CUSLICE_REAL(cuStreamGetCtx)(stream, &context);
    return known == CUDA_SUCCESS ? device_of(context) : -1;
}

}  // namespace cuslice
