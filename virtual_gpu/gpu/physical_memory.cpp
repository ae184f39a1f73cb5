// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/physical_memory.h"

#include <algorithm>
#include <cstdint>

namespace cuslice {

size_t PhysicalMemory::index_of(Handle handle) const {
    const auto less = [](const Allocation& allocation, Handle wanted) { return allocation.handle < wanted; };
    return static_cast<size_t>(std::lower_bound(allocations_.begin(), allocations_.end(), handle, less) -
                               allocations_.begin());
}

size_t PhysicalMemory::mapping_at(uint64_t address) const {
    const auto less = [](const Mapping& mapping, uint64_t wanted) { return mapping.address < wanted; };
    return static_cast<size_t>(std::lower_bound(mappings_.begin(), mappings_.end(), address, less) - mappings_.begin());
}

PhysicalMemory::Allocation* PhysicalMemory::find(Handle handle) {
    const size_t i = index_of(handle);
    return i < allocations_.size() && allocations_[i].handle == handle ? &allocations_[i] : nullptr;
}

// Removes an allocation that nothing keeps alive.
bool PhysicalMemory::take_if_unused(Handle handle, Allocation* ended) {
    const size_t i = index_of(handle);
    if (i == allocations_.size() || allocations_[i].handle != handle || allocations_[i].handles ||
        allocations_[i].mappings)
        return false;
    *ended = allocations_[i];
    allocations_.erase_at(i);
    return true;
}

bool PhysicalMemory::created(Handle handle, uint64_t bytes, int gpu) {
    LockGuard lock(mutex_);
    return allocations_.insert_at(index_of(handle), {handle, bytes, 1, 0, gpu, Kept::by_nobody});
}

void PhysicalMemory::retained(Handle handle) {
    LockGuard lock(mutex_);
    if (Allocation* allocation = find(handle))
        allocation->handles++;
}

void PhysicalMemory::kept_elsewhere(Handle handle, Kept by) {
    LockGuard lock(mutex_);
    if (Allocation* allocation = find(handle))
        allocation->kept = std::max(allocation->kept, by);
}

// With the lock held. As soon as no handle is left, whatever mappings there are: of a release and an unmapping at once
// neither knows which one the driver does last.
uint64_t PhysicalMemory::exported_that_may_end(Handle handle) {
    const Allocation* const ending = find(handle);
    if (!ending || ending->handles)
        return 0;
    uint64_t gpus = 0;
    const auto add = [&](const Allocation* one) {
        if (one && one->kept == Kept::exported && one->gpu >= 0 && one->gpu < kMaxGpus)
            gpus |= 1ull << one->gpu;
    };
    add(ending);
    if (ending->gpu < 0)
        for (const Binding& binding : bindings_)
            if (binding.object == handle)
                add(find(binding.memory));
    return gpus;
}

PhysicalMemory::Change PhysicalMemory::release(Handle handle) {
    LockGuard lock(mutex_);
    Allocation* allocation = find(handle);
    if (!allocation || !allocation->handles)
        return {};
    allocation->handles--;
    return {handle, 0, 0, true, exported_that_may_end(handle)};
}

void PhysicalMemory::release_failed(const Change& change) {
    if (change.noted)
        retained(change.handle);
}

void PhysicalMemory::release_done(const Change& change, OnFreed on_freed) {
    if (change.noted)
        end_if_unused(change.handle, on_freed);
}

void PhysicalMemory::end_if_unused(Handle handle, OnFreed on_freed) {
    Allocation ended{};
    {
        LockGuard lock(mutex_);
        if (!take_if_unused(handle, &ended))
            return;
    }
    if (ended.gpu < 0)
        return end_bindings_of(ended, on_freed);
    on_freed.call(on_freed.self, ended.gpu, ended.bytes, ended.kept);
}

bool PhysicalMemory::mapped(CUdeviceptr address, uint64_t bytes, Handle handle) {
    LockGuard lock(mutex_);
    Allocation* allocation = find(handle);
    if (!allocation)
        return true;
    if (!mappings_.insert_at(mapping_at(address), {address, bytes, handle}))
        return false;
    allocation->mappings++;
    return true;
}

uint64_t PhysicalMemory::held_on(int gpu, uint64_t* allocations) {
    LockGuard lock(mutex_);
    uint64_t bytes = 0;
    for (const Allocation& allocation : allocations_) {
        if (allocation.gpu != gpu)
            continue;
        bytes += allocation.bytes;
        ++*allocations;
    }
    return bytes;
}

void PhysicalMemory::unmap(CUdeviceptr address, uint64_t bytes, Unmapping* gone) {
    LockGuard lock(mutex_);
    const size_t i = mapping_at(address);
    while (i < mappings_.size() && mappings_[i].address - address < bytes) {
        const Mapping mapping = mappings_[i];
        if (!gone->mappings.push_back({mapping.handle, mapping.address, mapping.bytes, true}))
            return;
        mappings_.erase_at(i);
        gone->exported |= exported_that_may_end(mapping.handle);
    }
}

void PhysicalMemory::unmap_failed(Unmapping* gone) {
    LockGuard lock(mutex_);
    for (const Change& m : gone->mappings)
        mappings_.insert_at(mapping_at(m.address), {m.address, m.bytes, m.handle});
    gone->mappings.release();
}

void PhysicalMemory::unmap_done(Unmapping* gone, OnFreed on_freed) {
    for (const Change& mapping : gone->mappings) {
        {
            LockGuard lock(mutex_);
            if (Allocation* allocation = find(mapping.handle))
                allocation->mappings--;
        }
        end_if_unused(mapping.handle, on_freed);
    }
    gone->mappings.release();
}

// With the lock held.
bool PhysicalMemory::insert_binding(const Binding& binding) {
    Allocation* allocation = find(binding.memory);
    if (!allocation)
        return true;
    if (!find(binding.object)) {
        allocation->kept = std::max(allocation->kept, Kept::by_array);
        return true;
    }
    if (!bindings_.push_back(binding))
        return false;
    allocation->mappings++;
    return true;
}

bool PhysicalMemory::bound(Handle object, uint64_t offset, uint64_t bytes, Handle memory) {
    LockGuard lock(mutex_);
    return insert_binding({object, memory, offset, bytes});
}

bool PhysicalMemory::bound_at(Handle object, uint64_t offset, uint64_t bytes, CUdeviceptr address) {
    LockGuard lock(mutex_);
    const size_t i = mapping_at(address + 1);
    if (i == 0 || address - mappings_[i - 1].address >= mappings_[i - 1].bytes)
        return true;
    return insert_binding({object, mappings_[i - 1].handle, offset, bytes});
}

PhysicalMemory::Unbinding PhysicalMemory::unbind(Handle object, int gpu, uint64_t offset) {
    LockGuard lock(mutex_);
    for (size_t i = 0; i < bindings_.size(); i++) {
        const Binding binding = bindings_[i];
        const Allocation* allocation = find(binding.memory);
        if (binding.object != object || binding.offset != offset || !allocation || allocation->gpu != gpu)
            continue;
        bindings_.remove_at(i);
        return {object, binding.memory, offset, binding.bytes, true, exported_that_may_end(binding.memory)};
    }
    return {};
}

void PhysicalMemory::unbind_failed(const Unbinding& binding) {
    LockGuard lock(mutex_);
    if (binding.noted)
        bindings_.push_back({binding.object, binding.memory, binding.offset, binding.bytes});
}

void PhysicalMemory::unbind_done(const Unbinding& binding, OnFreed on_freed) {
    if (!binding.noted)
        return;
    {
        LockGuard lock(mutex_);
        if (Allocation* allocation = find(binding.memory))
            allocation->mappings--;
    }
    end_if_unused(binding.memory, on_freed);
}

void PhysicalMemory::end_bindings_of(const Allocation& object, OnFreed on_freed) {
    for (;;) {
        Handle memory = 0;
        {
            LockGuard lock(mutex_);
            size_t i = 0;
            while (i < bindings_.size() && bindings_[i].object != object.handle)
                i++;
            if (i == bindings_.size())
                return;
            memory = bindings_[i].memory;
            bindings_.remove_at(i);
            Allocation* allocation = find(memory);
            if (!allocation)
                continue;
            allocation->mappings--;
            allocation->kept = std::max(allocation->kept, object.kept);
        }
        end_if_unused(memory, on_freed);
    }
}

}  // namespace cuslice
