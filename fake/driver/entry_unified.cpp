// SPDX-License-Identifier: Apache-2.0
// Attributes of pointers.

#include <cstring>

#include "fake/driver/addresses.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/capture.h"
#include "fake/driver/context.h"
#include "fake/driver/known_memory.h"
#include "fake/driver/pool.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

/// CUDA_SUCCESS if kernels of the current context can use the address. They can use memory of cuMemAlloc on another
/// GPU only if the context that owns it has been made a peer.
CUresult usable_here(const KnownMemory& known) {
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!known.device_block || context->gpu->ordinal == known.ordinal)
        return CUDA_SUCCESS;
    const DriverLock hold;
    return context->peers.count(known.context) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <typename T>
CUresult give(void* data, T value) {
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult set_sync_memops(const void* value, Address address) {
    const Found found = find_block(address);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    const std::lock_guard hold(found.gpu->lock);
    const Block block = found.region->heap.at(found.base);  // again: another thread may have freed it
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    block.record->sync_memops = flag != 0;
    return CUDA_SUCCESS;
}

CUresult attribute_of(const KnownMemory& known, CUpointer_attribute attribute, void* data) {
    switch (static_cast<int>(attribute)) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return give(data, known.context);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return give(data, static_cast<unsigned>(known.type));
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            CUSLICE_TRY(usable_here(known));
            return give(data, known.address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (!known.host_visible)
                return CUDA_ERROR_INVALID_VALUE;
            return give(data, reinterpret_cast<void*>(known.address));
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return give(data, int{known.sync});
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return give(data, known.id);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return give(data, static_cast<unsigned char>(known.managed));
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return give(data, known.ordinal);
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return give(data, int{known.device_block});
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return give(data, known.base);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return give(data, known.size);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return give(data, int{1});
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return give(data, 0ULL);
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            return give(data, int{0});
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return give(data, unsigned{usable_here(known) == CUDA_SUCCESS ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                                          : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE});
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return give(data, known.pool);
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS: {
            // Documented for memory of cuMemAlloc, and to make copies of it synchronous.
            const unsigned on = 1;
            if (!known.device_block)
                return CUDA_ERROR_INVALID_VALUE;
            CUSLICE_TRY(set_sync_memops(&on, known.address));
            return give(data, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS{known.id, static_cast<unsigned>(known.ordinal)});
        }
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// Zeros, or what stands for "not known", into an attribute of its own size.
void give_unknown(CUpointer_attribute attribute, void* data) {
    switch (static_cast<int>(attribute)) {
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            give(data, -2);
            break;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            give(data, 0);
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            give(data, static_cast<unsigned char>(0));
            break;
        default:
            give(data, 0ULL);
            break;
    }
}

}  // namespace

CUSLICE_ENTRY(cuPointerGetAttribute, data, attribute, address) {
    if (data == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const auto known = what_is(address);
    return known ? attribute_of(*known, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

// Documented: an address that isn't known, or an attribute that it hasn't, gives defaults and no error.
CUSLICE_ENTRY(cuPointerGetAttributes, count, attributes, data, address) {
    if (count == 0 || attributes == nullptr || data == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const auto known = what_is(address);
    for (unsigned i = 0; i < count; i++) {
        const int attribute = static_cast<int>(attributes[i]);
        if (attribute < 1 || attribute > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE || data[i] == nullptr) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!known || attribute_of(*known, attributes[i], data[i]) != CUDA_SUCCESS)
            give_unknown(attributes[i], data[i]);
    }
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuPointerSetAttribute, value, attribute, address) {
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(refuse_unsafe());
    return set_sync_memops(value, address);
}
