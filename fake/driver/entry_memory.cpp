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
    Gpu& gpu = *context->gpu;
    return gpu.allocate(gpu.device, bytes, BlockKind::Device, context->number, *out);
}

/// Allocates in a region that is opened at the first use.
CUresult allocate_in(Region Gpu::*region, BlockKind kind, uint64_t bytes, Address& out) {
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(refuse_unsafe());
    Gpu& gpu = *context->gpu;
    {
        const DriverLock hold;
        CUSLICE_TRY(gpu.open_region(gpu.*region));
    }
    return gpu.allocate(gpu.*region, bytes, kind, context->number, out);
}

/// The oldest forms have 32-bit pointers: their memory lies below 4 GiB.
CUresult allocate(CUdeviceptr_v1* out, uint64_t bytes) {
    Address address = 0;
    if (out == nullptr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(allocate_in(&Gpu::low, BlockKind::Device, bytes, address));
    *out = static_cast<CUdeviceptr_v1>(address);
    return CUDA_SUCCESS;
}

constexpr uint64_t pitch_of(uint64_t width) { return (width + 511) & ~uint64_t{511}; }

/// Bytes of a pitched allocation, or 0 if that is more than 64 bits hold.
uint64_t pitched(uint64_t width, uint64_t height) {
    uint64_t bytes = 0;
    if (width > ~uint64_t{0} - 511 || __builtin_mul_overflow(pitch_of(width), height, &bytes))
        return 0;
    return bytes;
}

template <typename Pointer, typename Number>
CUresult allocate_pitched(Pointer* out, Number* pitch, uint64_t width, uint64_t height, unsigned element) {
    if (pitch == nullptr || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(allocate(out, pitched(width, height)));
    *pitch = static_cast<Number>(pitch_of(width));
    return CUDA_SUCCESS;
}

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

CUSLICE_ENTRY_PAIR(cuMemAlloc, allocate, out, bytes)
CUSLICE_ENTRY_PAIR(cuMemAllocPitch, allocate_pitched, out, pitch, width, height, element)

CUSLICE_ENTRY(cuMemAllocManaged, out, bytes, flags) {
    if (out == nullptr || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate_in(&Gpu::managed, BlockKind::Managed, bytes, *out);
}

CUSLICE_ENTRY_PAIR(cuMemFree, free_memory, address)
