// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/handle_registry.h"

#include <algorithm>

namespace cuslice {

constinit HandleRegistry the_handle_registry;

size_t HandleRegistry::home(const void* handle) const {
    const auto number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
    return static_cast<size_t>(number * 0x9e3779b97f4a7c15ull >> 20) & (rows_.size() - 1);
}

// Where it is, or the free row where it would be.
size_t HandleRegistry::find_row(const void* handle, HandleKind kind) const {
    size_t i = home(handle);
    while (rows_.begin()[i].handle && (rows_.begin()[i].handle != handle || rows_.begin()[i].kind != kind))
        i = (i + 1) & (rows_.size() - 1);
    return i;
}

void HandleRegistry::put(const Row& row) { rows_[find_row(row.handle, row.kind)] = row; }

bool HandleRegistry::grow() {
    PageVector<Row> old = rows_, larger;
    const size_t rows = old.size() ? old.size() * 2 : 128;
    while (larger.size() < rows)
        if (!larger.push_back({}))
            return larger.release(), false;
    rows_ = larger;
    for (const Row& row : old)
        if (row.handle)
            put(row);
    old.release();
    return true;
}

bool HandleRegistry::add(const void* handle, HandleKind kind, int device, uint64_t context, PoolAccess access) {
    LockGuard lock(mutex_);
    if ((count_ + 1) * 2 > rows_.size() && !grow())
        return false;
    const size_t i = find_row(handle, kind);
    count_ += !rows_[i].handle;
    rows_[i] = {handle, context, kind, static_cast<uint8_t>(device), access};
    return true;
}

HandleOwner HandleRegistry::find(const void* handle, HandleKind kind) {
    LockGuard lock(mutex_);
    if (!count_)
        return {};
    const Row& row = rows_[find_row(handle, kind)];
    return row.handle ? HandleOwner{true, row.device, row.context, row.access} : HandleOwner{};
}

void HandleRegistry::set_access(const void* pool, int device, bool reads, bool writes) {
    LockGuard lock(mutex_);
    if (!count_)
        return;
    Row& row = rows_[find_row(pool, HandleKind::pool)];
    if (!row.handle)
        return;
    const uint64_t bit = 1ull << device;
    row.access.reads = reads ? row.access.reads | bit : row.access.reads & ~bit;
    row.access.writes = writes ? row.access.writes | bit : row.access.writes & ~bit;
}

HandleOwner HandleRegistry::claim(const void* pool, int device) {
    LockGuard lock(mutex_);
    if (!count_)
        return {};
    Row& row = rows_[find_row(pool, HandleKind::pool)];
    if (!row.handle)
        return {};
    if (row.device & HandleOwner::kUnclaimed)
        row.device = static_cast<uint8_t>(device);
    return {true, row.device, row.context, row.access};
}

// The rows behind it move up, so that no look-up stops short of what it seeks.
void HandleRegistry::remove_row(size_t i) {
    const size_t mask = rows_.size() - 1;
    for (size_t next = (i + 1) & mask; rows_[next].handle; next = (next + 1) & mask) {
        if (((next - home(rows_[next].handle)) & mask) < ((next - i) & mask))
            continue;
        rows_[i] = rows_[next];
        i = next;
    }
    rows_[i] = {};
    count_--;
}

void HandleRegistry::remove(const void* handle, HandleKind kind) {
    LockGuard lock(mutex_);
    if (!count_)
        return;
    const size_t i = find_row(handle, kind);
    if (rows_[i].handle)
        remove_row(i);
}

bool HandleRegistry::any_of(uint64_t devices, HandleKind kind) {
    LockGuard lock(mutex_);
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
        return row.handle && row.kind == kind && (devices >> row.device & 1) != 0;
    });
}

void* HandleRegistry::take_of(uint64_t context, HandleKind kind) {
    LockGuard lock(mutex_);
    for (size_t i = 0; i < rows_.size(); i++) {
        if (!rows_[i].handle || rows_[i].context != context || rows_[i].kind != kind)
            continue;
        void* handle = const_cast<void*>(rows_[i].handle);
        remove_row(i);
        return handle;
    }
    return nullptr;
}

}  // namespace cuslice
