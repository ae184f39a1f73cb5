// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/resolve.h"

#include "fake/driver/addresses.h"
#include "fake/driver/context.h"
#include "fake/driver/host_memory.h"
#include "fake/driver/mappings.h"
#include "fake/driver/state.h"
#include "fake/driver/virtual_memory.h"

namespace cuslice::fake {

int accessing_gpu() {
    Context* context = nullptr;
    return current_context(context) == CUDA_SUCCESS ? context->gpu->ordinal : -1;
}

CUresult resolve_device(Address address, size_t size, Access access, Extents& extents, int from_gpu) {
    for (const auto& gpu : driver().gpus) {
        Region* region = region_of(*gpu, address);
        if (region == nullptr)
            continue;
        const std::lock_guard hold(gpu->lock);
        const Block block = region->heap.find(address);
        if (!block || size > block.record->asked - (address - block.base))
            return CUDA_ERROR_INVALID_VALUE;
        if (access == Access::Write)
            block.record->touched = true;
        extents.push_back({&region->space, address, size, gpu.get(), nullptr});
        return CUDA_SUCCESS;
    }
    if (in_reserved_addresses(address))
        return resolve_mapped(address, size, access, extents, from_gpu);
    if (!host_range_known(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    extents.push_back({nullptr, address, size, nullptr, nullptr});
    return CUDA_SUCCESS;
}

CUresult resolve_host(const void* pointer, size_t size, Extents& extents) {
    const auto address = reinterpret_cast<Address>(pointer);
    if (pointer == nullptr || address + size < address)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_device_address(address) || is_device_address(address + size - 1))
        return CUDA_ERROR_INVALID_VALUE;
    extents.push_back({nullptr, address, size, nullptr, nullptr});
    return CUDA_SUCCESS;
}

CUresult resolve_any(Address address, size_t size, Access access, Extents& extents, int from_gpu) {
    if (is_device_address(address) || find_block(address))
        return resolve_device(address, size, access, extents, from_gpu);
    return resolve_host(reinterpret_cast<const void*>(address), size, extents);
}

}  // namespace cuslice::fake
