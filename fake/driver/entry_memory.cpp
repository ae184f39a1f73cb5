// SPDX-License-Identifier: Apache-2.0
// Device memory: allocate and free.

#include "fake/driver/addresses.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/capture.h"
#include "fake/driver/context.h"
#include "fake/driver/external.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/pool.h"
#include "fake/driver/sharing.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult allocate(CUdeviceptr* out, uint64_t bytes) {
    Context* context = nullptr;
    if (out == nullptr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    Address address = 0;
    Gpu& gpu = *context->gpu;
    const CUresult result = gpu.allocate(gpu.device, bytes, BlockKind::Device, context->number, address);
    if (result == CUDA_SUCCESS)
        *out = address;
    return result;
}

/// The oldest forms have 32-bit pointers: their memory lies below 4 GiB.
CUresult allocate_low(CUdeviceptr_v1* out, uint64_t bytes) {
    if (out == nullptr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(refuse_unsafe());
    Gpu& gpu = *context->gpu;
    {
        const DriverLock hold;
        CUSLICE_TRY(gpu.open_region(gpu.low));
    }
    Address address = 0;
    const CUresult result = gpu.allocate(gpu.low, bytes, BlockKind::Device, context->number, address);
    if (result == CUDA_SUCCESS)
        *out = static_cast<CUdeviceptr_v1>(address);
    return result;
}

constexpr uint64_t pitch_of(uint64_t width) { return (width + 511) & ~uint64_t{511}; }

/// Bytes of a pitched allocation, or 0 if that is more than 64 bits hold.
uint64_t pitched(uint64_t width, uint64_t height) {
    uint64_t bytes = 0;
    if (width > ~uint64_t{0} - 511 || __builtin_mul_overflow(pitch_of(width), height, &bytes))
        return 0;
    return bytes;
}

bool element_size(unsigned bytes) { return bytes == 4 || bytes == 8 || bytes == 16; }

CUresult free_of_graph(Address address) {
    Task done;
    {
        const DriverLock hold;
        CUSLICE_TRY(free_graph_memory(address, done));
    }
    done();
    return CUDA_SUCCESS;
}

CUresult free_memory(Address address) {
    if (address == 0)
        return CUDA_SUCCESS;
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    // The current GPU's own memory first: nearly always it is that.
    Gpu& own = *context->gpu;
    if (own.device.contains(address)) [[likely]] {
        const std::lock_guard hold(own.lock);
        const Block block = own.device.heap.at(address);
        if (block && block.record->kind == BlockKind::Device) [[likely]] {
            own.free_block(own.device, block);
            return CUDA_SUCCESS;
        }
    }
    const Found found = find_block(address);
    if (is_pool_import(address))
        return close_shared(address, true);
    if (found && found.record.kind == BlockKind::Graph)
        return free_of_graph(address);
    if (!found && free_external_buffer(address))
        return CUDA_SUCCESS;
    if (is_pooled(address))
        return free_pooled_now(address);
    if (!found || found.base != address)
        return CUDA_ERROR_INVALID_VALUE;
    if (found.record.kind != BlockKind::Device && found.record.kind != BlockKind::Managed) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard hold(found.gpu->lock);
    const Block block = found.region->heap.at(address);  // again: another thread may have freed it
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    found.gpu->free_block(*found.region, block);
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuMemAlloc_v2, out, bytes) { return allocate(out, bytes); }

CUSLICE_ENTRY(cuMemAlloc, out, bytes) { return allocate_low(out, bytes); }

CUSLICE_ENTRY(cuMemAllocPitch_v2, out, pitch, width, height, element) {
    if (pitch == nullptr || !element_size(element))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = allocate(out, pitched(width, height));
    if (result == CUDA_SUCCESS)
        *pitch = pitch_of(width);
    return result;
}

CUSLICE_ENTRY(cuMemAllocPitch, out, pitch, width, height, element) {
    if (pitch == nullptr || !element_size(element))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = allocate_low(out, pitched(width, height));
    if (result == CUDA_SUCCESS)
        *pitch = static_cast<unsigned>(pitch_of(width));
    return result;
}

CUSLICE_ENTRY(cuMemAllocManaged, out, bytes, flags) {
    if (out == nullptr || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(refuse_unsafe());
    Gpu& gpu = *context->gpu;
    {
        const DriverLock hold;
        CUSLICE_TRY(gpu.open_region(gpu.managed));
    }
    Address address = 0;
    CUSLICE_TRY(gpu.allocate(gpu.managed, bytes, BlockKind::Managed, context->number, address));
    // The host writes to it without a call: its contents are always worth discarding.
    const std::lock_guard hold(gpu.lock);
    if (const Block block = gpu.managed.heap.at(address))
        block.record->touched = true;
    *out = address;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY_PAIR(cuMemFree, free_memory, address)
