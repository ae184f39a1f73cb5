// Device memory: allocate, free, how much there is.

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

CUresult allocate(CUdeviceptr* out, std::uint64_t bytes) {
    Context* context = nullptr;
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    Address address = 0;
    Gpu& gpu = *context->gpu;
    const CUresult result = gpu.allocate(gpu.device, bytes, BlockKind::Device, context->number, address);
    if (result == CUDA_SUCCESS) *out = address;
    return result;
}

/// The oldest forms have 32-bit pointers: their memory lies below 4 GiB.
CUresult allocate_low(CUdeviceptr_v1* out, std::uint64_t bytes) {
    Context* context = nullptr;
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) return bad;
    Gpu& gpu = *context->gpu;
    {
        const std::lock_guard hold(driver().lock);
        if (const CUresult bad = gpu.open_region(gpu.low); bad != CUDA_SUCCESS) return bad;
    }
    Address address = 0;
    const CUresult result = gpu.allocate(gpu.low, bytes, BlockKind::Device, context->number, address);
    if (result == CUDA_SUCCESS) *out = static_cast<CUdeviceptr_v1>(address);
    return result;
}

constexpr std::uint64_t pitch_of(std::uint64_t width) { return (width + 511) & ~std::uint64_t{511}; }

/// Bytes of a pitched allocation, or 0 if that is more than 64 bits hold.
std::uint64_t pitched(std::uint64_t width, std::uint64_t height) {
    std::uint64_t bytes = 0;
    if (width > ~std::uint64_t{0} - 511 || __builtin_mul_overflow(pitch_of(width), height, &bytes)) return 0;
    return bytes;
}

bool element_size(unsigned bytes) { return bytes == 4 || bytes == 8 || bytes == 16; }

CUresult free_of_graph(Address address) {
    Task done;
    {
        const std::lock_guard hold(driver().lock);
        if (const CUresult bad = free_graph_memory(address, done); bad != CUDA_SUCCESS) return bad;
    }
    done();
    return CUDA_SUCCESS;
}

CUresult free_memory(Address address) {
    if (address == 0) return CUDA_SUCCESS;
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
    if (is_pool_import(address)) return close_shared(address, true);
    if (found && found.record.kind == BlockKind::Graph) return free_of_graph(address);
    if (!found && free_external_buffer(address)) return CUDA_SUCCESS;
    if (!found || found.base != address) return CUDA_ERROR_INVALID_VALUE;
    if (found.record.kind == BlockKind::Pool) return free_pooled_now(*found.gpu, address);
    if (found.record.kind != BlockKind::Device && found.record.kind != BlockKind::Managed) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard hold(found.gpu->lock);
    const Block block = found.region->heap.at(address);  // again: another thread may have freed it
    if (!block) return CUDA_ERROR_INVALID_VALUE;
    found.gpu->free_block(*found.region, block);
    return CUDA_SUCCESS;
}

/// What the host's programs hold of the memory that an integrated GPU shares with them: it changes at any time.
std::uint64_t host_use(const GpuSpec& gpu) {
    static std::atomic<unsigned> looks{0};
    if (!gpu.integrated) return 0;
    constexpr std::uint64_t base = 4ULL << 30, step = 64ULL << 20;
    return base + looks.fetch_add(1, std::memory_order_relaxed) * 5 % 8 * step;
}

CUresult info(std::uint64_t& free, std::uint64_t& total) {
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    total = context->gpu->capacity();
    const std::uint64_t used = context->gpu->books.used_by_all() + host_use(context->gpu->spec);
    free = used < total ? total - used : 0;
    return CUDA_SUCCESS;
}

unsigned clipped(std::uint64_t bytes) { return bytes > 0xffffffffULL ? 0xffffffffU : static_cast<unsigned>(bytes); }

}  // namespace

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
    CUSLICE_ENTER(cuMemAlloc_v2)
    return allocate(out, bytes);
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1* out, unsigned int bytes) {
    CUSLICE_ENTER(cuMemAlloc)
    return allocate_low(out, bytes);
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                    unsigned int element) {
    CUSLICE_ENTER(cuMemAllocPitch_v2)
    if (pitch == nullptr || !element_size(element)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = allocate(out, pitched(width, height));
    if (result == CUDA_SUCCESS) *pitch = pitch_of(width);
    return result;
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr_v1* out, unsigned* pitch, unsigned width, unsigned height,
                                 unsigned element) {
    CUSLICE_ENTER(cuMemAllocPitch)
    if (pitch == nullptr || !element_size(element)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = allocate_low(out, pitched(width, height));
    if (result == CUDA_SUCCESS) *pitch = static_cast<unsigned>(pitch_of(width));
    return result;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
    CUSLICE_ENTER(cuMemAllocManaged)
    Context* context = nullptr;
    if (out == nullptr || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) return bad;
    Gpu& gpu = *context->gpu;
    {
        const std::lock_guard hold(driver().lock);
        if (const CUresult bad = gpu.open_region(gpu.managed); bad != CUDA_SUCCESS) return bad;
    }
    Address address = 0;
    const CUresult result = gpu.allocate(gpu.managed, bytes, BlockKind::Managed, context->number, address);
    if (result != CUDA_SUCCESS) return result;
    // The host writes to it without a call: its contents are always worth discarding.
    const std::lock_guard hold(gpu.lock);
    gpu.managed.heap.at(address).record->touched = true;
    *out = address;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
    CUSLICE_ENTER(cuMemFree_v2)
    return free_memory(address);
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 address) {
    CUSLICE_ENTER(cuMemFree)
    return free_memory(address);
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
    CUSLICE_ENTER(cuMemGetInfo_v2)
    std::uint64_t left = 0, all = 0;
    if (const CUresult bad = info(left, all); bad != CUDA_SUCCESS) return bad;
    if (free != nullptr) *free = left;
    if (total != nullptr) *total = all;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetInfo(unsigned int* free, unsigned int* total) {
    CUSLICE_ENTER(cuMemGetInfo)
    std::uint64_t left = 0, all = 0;
    if (const CUresult bad = info(left, all); bad != CUDA_SUCCESS) return bad;
    if (free != nullptr) *free = clipped(left);
    if (total != nullptr) *total = clipped(all);
    return CUDA_SUCCESS;
}
