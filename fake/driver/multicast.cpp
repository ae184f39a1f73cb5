// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/multicast.h"

#include <algorithm>
#include <condition_variable>

#include "fake/driver/architecture.h"
#include "fake/driver/find.h"
#include "fake/driver/handles.h"
#include "fake/driver/mappings.h"
#include "fake/driver/physical.h"
#include "fake/driver/state.h"

namespace cuslice::fake {
namespace {

HandleTable<Multicast, CUmemGenericAllocationHandle, HandleKind::Multicast> multicasts;

std::condition_variable_any& team_grew() {
    static auto* one = new std::condition_variable_any;  // threads may outlive the process's static objects
    return *one;
}

bool complete(const Multicast& object) { return object.team.size() == object.prop.numDevices; }

/// An object that the program still holds.
Multicast* held(CUmemGenericAllocationHandle handle) {
    Multicast* object = multicasts.find(handle);
    return object != nullptr && object->handles > 0 ? object : nullptr;
}

/// With its last handle and its last mapping the object goes, and what was bound to it is bound no more.
void drop_if_unused(CUmemGenericAllocationHandle handle, Multicast& object) {
    if (object.handles > 0 || object.mappings > 0)
        return;
    const auto bindings = std::move(object.bindings);
    multicasts.destroy(handle);
    team_grew().notify_all();
    for (const auto& [place, binding] : bindings)
        give_up_physical(binding.memory);
}

/// True if some memory of this GPU is bound within [offset, offset + size).
bool taken(const Multicast& object, int ordinal, size_t offset, size_t size) {
    return std::any_of(object.bindings.begin(), object.bindings.end(), [&](const auto& one) {
        const auto& [place, binding] = one;
        return place.first == ordinal && place.second < offset + size && offset < place.second + binding.size;
    });
}

bool within(size_t offset, size_t size, size_t end) {
    return size > 0 && whole(size) && whole(offset) && offset <= end && size <= end - offset;
}

/// With the lock held and the team complete.
CUresult bind(Multicast& object, size_t offset, CUmemGenericAllocationHandle memory, size_t memory_offset,
              size_t size) {
    CUSLICE_FIND_ARGUMENT(physical, physicals, memory);
    if (!within(memory_offset, size, physical->size) || !within(offset, size, object.prop.size))
        return CUDA_ERROR_INVALID_VALUE;
    if (std::find(object.team.begin(), object.team.end(), physical->gpu) == object.team.end())
        return CUDA_ERROR_INVALID_DEVICE;
    const int ordinal = physical->gpu->ordinal;
    if (taken(object, ordinal, offset, size))
        return CUDA_ERROR_INVALID_VALUE;
    object.bindings[{ordinal, offset}] = {size, memory};
    physical->mappings++;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult create_multicast(CUmemGenericAllocationHandle& out, const CUmulticastObjectProp& prop) {
    if (prop.numDevices == 0 || prop.size == 0 || !whole(prop.size) || prop.flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const auto capable = std::count_if(driver().gpus.begin(), driver().gpus.end(),
                                       [](const auto& gpu) { return can_multicast(gpu->spec); });
    if (capable == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    // Without other processes the team would never be complete.
    if (prop.numDevices > static_cast<size_t>(capable))
        return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(tables().lock);
    const auto [handle, object] = multicasts.create();
    object->prop = prop;
    out = handle;
    return CUDA_SUCCESS;
}

CUresult add_to_team(CUmemGenericAllocationHandle handle, CUdevice device) {
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    if (!can_multicast(gpu->spec))
        return CUDA_ERROR_NOT_SUPPORTED;
    const std::lock_guard hold(tables().lock);
    Multicast* object = held(handle);
    if (object == nullptr || complete(*object))
        return CUDA_ERROR_INVALID_VALUE;
    if (std::find(object->team.begin(), object->team.end(), gpu) != object->team.end())
        return CUDA_ERROR_INVALID_VALUE;
    object->team.push_back(gpu);
    team_grew().notify_all();
    return CUDA_SUCCESS;
}

CUresult bind_memory(CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,
                     size_t memory_offset, size_t size) {
    std::unique_lock hold(tables().lock);
    await_team(handle, hold);
    Multicast* object = held(handle);
    if (object == nullptr || held_physical(memory) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return bind(*object, offset, memory, memory_offset, size);
}

CUresult bind_address(CUmemGenericAllocationHandle handle, size_t offset, Address address, size_t size) {
    std::unique_lock hold(tables().lock);
    await_team(handle, hold);
    Multicast* object = held(handle);
    const auto found = around(tables().mappings, address);
    if (object == nullptr || found == tables().mappings.end())
        return CUDA_ERROR_INVALID_VALUE;
    return bind(*object, offset, found->second.handle, address - found->first, size);
}

CUresult unbind_memory(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size) {
    if (driver().gpu(device) == nullptr)
        return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard hold(tables().lock);
    Multicast* object = held(handle);
    if (object == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    // Documented as undefined where it does not match what was bound.
    const auto found = object->bindings.find({device, offset});
    if (found == object->bindings.end() || found->second.size != size)
        return CUDA_ERROR_INVALID_VALUE;
    const CUmemGenericAllocationHandle memory = found->second.memory;
    object->bindings.erase(found);
    give_up_physical(memory);
    return CUDA_SUCCESS;
}

bool is_multicast(CUmemGenericAllocationHandle handle) { return multicasts.find(handle) != nullptr; }

size_t multicast_size(CUmemGenericAllocationHandle handle) {
    const Multicast* object = held(handle);
    return object == nullptr ? 0 : object->prop.size;
}

Gpu* multicast_gpu(CUmemGenericAllocationHandle handle) { return multicasts.find(handle)->team.front(); }

void await_team(CUmemGenericAllocationHandle handle, std::unique_lock<std::shared_mutex>& hold) {
    team_grew().wait(hold, [&] {
        const Multicast* object = held(handle);
        return object == nullptr || complete(*object);
    });
}

void multicast_mapped(CUmemGenericAllocationHandle handle) { multicasts.find(handle)->mappings++; }

void multicast_unmapped(CUmemGenericAllocationHandle handle) {
    Multicast* object = multicasts.find(handle);
    object->mappings--;
    drop_if_unused(handle, *object);
}

CUresult retain_multicast(CUmemGenericAllocationHandle handle) {
    multicasts.find(handle)->handles++;
    return CUDA_SUCCESS;
}

CUresult release_multicast(CUmemGenericAllocationHandle handle) {
    Multicast* object = held(handle);
    if (object == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    object->handles--;
    // Threads that wait for its team must not wait for ever.
    if (object->handles == 0)
        team_grew().notify_all();
    drop_if_unused(handle, *object);
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
