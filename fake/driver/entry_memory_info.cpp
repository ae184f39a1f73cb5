// SPDX-License-Identifier: Apache-2.0
// How much device memory there is, and what block an address is in.

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "fake/driver/api_prologue.h"
#include "fake/driver/known_memory.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

/// Bytes that the host's programs hold of the memory that an integrated GPU shares with them. The number changes at
/// any time.
uint64_t host_use(const GpuSpec& gpu) {
    static std::atomic<unsigned> looks{0};
    if (!gpu.integrated)
        return 0;
    constexpr uint64_t kBase = 4ULL << 30, kStep = 64ULL << 20;
    return kBase + looks.fetch_add(1, std::memory_order_relaxed) * 5 % 8 * kStep;
}

/// Writes a number of bytes; the 32 bits of the oldest form clamp it.
template <typename Number>
void give(Number* out, uint64_t bytes) {
    if (out != nullptr)
        *out = static_cast<Number>(std::min<uint64_t>(bytes, std::numeric_limits<Number>::max()));
}

constexpr auto info = [](auto* free, auto* total) {
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) [[unlikely]]
        return bad;
    const uint64_t all = context->gpu->capacity();
    const uint64_t used = context->gpu->books.used_by_all() + host_use(context->gpu->spec);
    give(free, used < all ? all - used : 0);
    give(total, all);
    return CUDA_SUCCESS;
};

constexpr auto address_range = [](auto* base, auto* size, Address address) {
    CUSLICE_FIND_CURRENT(context);
    const auto known = what_is(address);
    if (!known)
        return CUDA_ERROR_NOT_FOUND;  // page-locked host memory is known like any other
    if (base != nullptr)
        *base = static_cast<std::remove_pointer_t<decltype(base)>>(known->base);
    if (size != nullptr)
        *size = static_cast<std::remove_pointer_t<decltype(size)>>(known->size);
    return CUDA_SUCCESS;
};

}  // namespace

CUSLICE_ENTRY_PAIR(cuMemGetInfo, info, free, total)
CUSLICE_ENTRY_PAIR(cuMemGetAddressRange, address_range, base, size, address)

// This GPU exports no memory to other devices; what is documented of the arguments is checked all the same.
CUSLICE_ENTRY(cuMemGetHandleForAddressRange, handle, address, size, type, flags) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
        (flags != 0 && flags != CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size == 0 || address % page != 0 || size % page != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const auto known = what_is(address);
    if (!known || known->type != CU_MEMORYTYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t whole = round_up(known->size, page);  // the last page may be partly in use
    if (size > whole - (address - known->base))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_UNSUPPORTED("cuMemGetHandleForAddressRange: dma-buf");
}
