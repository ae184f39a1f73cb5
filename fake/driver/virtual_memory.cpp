// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/virtual_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "fake/driver/api_prologue.h"
#include "fake/driver/mappings.h"
#include "fake/driver/multicast.h"
#include "fake/driver/physical.h"
#include "fake/driver/state.h"

namespace cuslice::fake {

namespace {

/// The mappings that exactly fill [address, address + size); with the lock held.
bool exact_mappings(Address address, size_t size, std::vector<Address>& found) {
    Tables& t = tables();
    for (size_t done = 0; done < size;) {
        const auto at = t.mappings.find(address + done);
        if (at == t.mappings.end() || at->second.size > size - done)
            return false;
        found.push_back(at->first);
        done += at->second.size;
    }
    return size > 0;
}

/// How much can be mapped of what the handle stands for; 0 if it is none that is still held.
size_t mappable_size(CUmemGenericAllocationHandle handle) {
    if (is_multicast(handle))
        return multicast_size(handle);
    const Physical* physical = held_physical(handle);
    return physical == nullptr ? 0 : physical->size;
}

}  // namespace

CUresult reserve_addresses(Address& out, size_t size, size_t alignment) {
    if (size == 0 || !whole(size) || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t align = std::max(alignment, kVirtualGranularity);
    if (size + align < size)
        return CUDA_ERROR_INVALID_VALUE;
    void* range = mmap(nullptr, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const Address base = round_up(reinterpret_cast<Address>(range), align);
    const std::lock_guard hold(tables().lock);
    tables().reservations[base] = {size, range, size + align};
    out = base;
    return CUDA_SUCCESS;
}

CUresult free_addresses(Address address, size_t size) {
    const std::lock_guard hold(tables().lock);
    const auto found = tables().reservations.find(address);
    if (found == tables().reservations.end() || found->second.size != size)
        return CUDA_ERROR_INVALID_VALUE;
    const auto inside = tables().mappings.lower_bound(address);
    if (inside != tables().mappings.end() && inside->first - address < size)
        return CUDA_ERROR_INVALID_VALUE;
    munmap(found->second.range, found->second.range_size);
    tables().reservations.erase(found);
    return CUDA_SUCCESS;
}

CUresult release_physical(CUmemGenericAllocationHandle handle) {
    const std::lock_guard hold(tables().lock);
    if (is_multicast(handle))
        return release_multicast(handle);
    Physical* physical = held_physical(handle);
    if (physical == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    physical->handles--;
    drop_if_unused(handle, *physical);
    return CUDA_SUCCESS;
}

CUresult map_physical(Address address, size_t size, size_t offset, CUmemGenericAllocationHandle handle) {
    std::unique_lock hold(tables().lock);
    if (is_multicast(handle))
        await_team(handle, hold);
    Tables& t = tables();
    const size_t mappable = mappable_size(handle);
    const auto reservation = around(t.reservations, address);
    if (mappable == 0 || offset != 0 || size != mappable || !whole(address) || reservation == t.reservations.end() ||
        size > reservation->second.size - (address - reservation->first)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto next = t.mappings.lower_bound(address);
    if (around(t.mappings, address) != t.mappings.end() || (next != t.mappings.end() && next->first - address < size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Mapping& mapping = t.mappings[address];
    mapping.size = size;
    mapping.handle = handle;
    if (is_multicast(handle)) {
        multicast_mapped(handle);
    } else {
        physicals.find(handle)->mappings++;
    }
    return CUDA_SUCCESS;
}

CUresult unmap_physical(Address address, size_t size) {
    const std::lock_guard hold(tables().lock);
    std::vector<Address> found;
    if (!exact_mappings(address, size, found))
        return CUDA_ERROR_INVALID_VALUE;
    for (const Address at : found) {
        const CUmemGenericAllocationHandle handle = tables().mappings[at].handle;
        *tables().mappings[at].mapped = false;
        tables().mappings.erase(at);
        if (is_multicast(handle)) {
            multicast_unmapped(handle);
        } else {
            give_up_physical(handle);
        }
    }
    return CUDA_SUCCESS;
}

CUresult set_mapped_access(Address address, size_t size, const CUmemAccessDesc* access, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const bool flags = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                           access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                           access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (!flags || access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (driver().gpu(access[i].location.id) == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    const std::lock_guard hold(tables().lock);
    std::vector<Address> found;
    if (!exact_mappings(address, size, found))
        return CUDA_ERROR_INVALID_VALUE;
    for (const Address at : found) {
        for (size_t i = 0; i < count; i++)
            tables().mappings[at].access[access[i].location.id] = access[i].flags;
    }
    return CUDA_SUCCESS;
}

CUresult get_mapped_access(Address address, const CUmemLocation& location, unsigned long long& flags) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || driver().gpu(location.id) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const std::shared_lock hold(tables().lock);
    const auto found = around(tables().mappings, address);
    if (found == tables().mappings.end())
        return CUDA_ERROR_INVALID_VALUE;
    const auto entry = found->second.access.find(location.id);
    flags = entry == found->second.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : entry->second;
    return CUDA_SUCCESS;
}

CUresult retain_physical(Address address, CUmemGenericAllocationHandle& out) {
    const std::lock_guard hold(tables().lock);
    const auto found = around(tables().mappings, address);
    if (found == tables().mappings.end())
        return CUDA_ERROR_INVALID_VALUE;
    out = found->second.handle;
    if (is_multicast(out))
        return retain_multicast(out);
    physicals.find(out)->handles++;
    return CUDA_SUCCESS;
}

CUresult resolve_mapped(Address address, size_t size, Access access, Extents& extents, int from_gpu) {
    const std::shared_lock hold(tables().lock);
    while (size > 0) {
        const auto found = around(tables().mappings, address);
        if (found == tables().mappings.end())
            return CUDA_ERROR_INVALID_VALUE;
        const auto given = found->second.access.find(from_gpu);
        const auto flags = given == found->second.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : given->second;
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
            (access == Access::Write || flags != CU_MEM_ACCESS_FLAGS_PROT_READ))
            return CUDA_ERROR_INVALID_VALUE;
        // Documented for the multimem instructions of kernels, which don't run here.
        if (is_multicast(found->second.handle))
            CUSLICE_UNSUPPORTED("copying to or from the address of a multicast object");
        Physical& physical = *physicals.find(found->second.handle);
        const size_t offset = address - found->first, part = std::min(size, found->second.size - offset);
        if (access == Access::Write) {
            const std::lock_guard hold_gpu(physical.gpu->lock);
            if (const Block block = physical.gpu->device.heap.at(physical.at))
                block.record->touched = true;
        }
        extents.push_back(
            {&physical.gpu->device.space, physical.at + offset, part, physical.gpu, found->second.mapped});
        address += part;
        size -= part;
    }
    return CUDA_SUCCESS;
}

bool find_mapping(Address address, Address& base, size_t& size, Gpu*& gpu) {
    const std::shared_lock hold(tables().lock);
    const auto found = around(tables().mappings, address);
    if (found == tables().mappings.end())
        return false;
    base = found->first;
    size = found->second.size;
    const CUmemGenericAllocationHandle handle = found->second.handle;
    gpu = is_multicast(handle) ? multicast_gpu(handle) : physicals.find(handle)->gpu;
    return true;
}

}  // namespace cuslice::fake
