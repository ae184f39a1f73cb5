// How much device memory there is, and what block an address is in.

#include <unistd.h>

#include "fake/driver/api_prologue.h"
#include "fake/driver/known_memory.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

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

CUresult address_range(Address& base, std::size_t& size, Address address) {
    CUSLICE_FIND(Context, context, current_context(context));
    const auto known = what_is(address);
    if (!known) return CUDA_ERROR_NOT_FOUND;  // page-locked host memory is known like any other
    base = known->base;
    size = known->size;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuMemGetInfo_v2, free, total) {
    std::uint64_t left = 0, all = 0;
    if (const CUresult bad = info(left, all); bad != CUDA_SUCCESS) return bad;
    if (free != nullptr) *free = left;
    if (total != nullptr) *total = all;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemGetInfo, free, total) {
    std::uint64_t left = 0, all = 0;
    if (const CUresult bad = info(left, all); bad != CUDA_SUCCESS) return bad;
    if (free != nullptr) *free = clipped(left);
    if (total != nullptr) *total = clipped(all);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemGetAddressRange_v2, base, size, address) {
    Address start = 0;
    std::size_t bytes = 0;
    if (const CUresult bad = address_range(start, bytes, address); bad != CUDA_SUCCESS) return bad;
    if (base != nullptr) *base = start;
    if (size != nullptr) *size = bytes;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemGetAddressRange, base, size, address) {
    Address start = 0;
    std::size_t bytes = 0;
    if (const CUresult bad = address_range(start, bytes, address); bad != CUDA_SUCCESS) return bad;
    if (base != nullptr) *base = static_cast<CUdeviceptr_v1>(start);
    if (size != nullptr) *size = static_cast<unsigned>(bytes);
    return CUDA_SUCCESS;
}

// This GPU exports no memory to other devices; what is documented of the arguments is checked all the same.
CUSLICE_ENTRY(cuMemGetHandleForAddressRange, handle, address, size, type, flags) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
        (flags != 0 && flags != CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size == 0 || address % page != 0 || size % page != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto known = what_is(address);
    if (!known || known->type != CU_MEMORYTYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t whole = (known->size + page - 1) / page * page;  // the last page may be partly in use
    if (size > whole - (address - known->base)) return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_UNSUPPORTED("cuMemGetHandleForAddressRange: dma-buf");
}
