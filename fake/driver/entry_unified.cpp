// What is known of an address.

#include <unistd.h>

#include <cstring>
#include <optional>

#include "fake/driver/addresses.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/host_memory.h"
#include "fake/driver/pool.h"
#include "fake/driver/state.h"
#include "fake/driver/virtual_memory.h"

using namespace cuslice::fake;

namespace {

/// Everything that the attributes are read from.
struct Known {
    Address address = 0, base = 0;
    std::size_t size = 0;
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    CUcontext context = nullptr;
    CUmemoryPool pool = nullptr;
    int ordinal = 0;
    unsigned long long id = 0;
    bool managed = false, sync = false, host_visible = false, device_block = false;
};

CUcontext context_numbered(std::uint32_t number) {
    CUcontext found = nullptr;
    contexts.each([&](CUcontext handle, const Context& context) {
        if (context.number == number && context.active) found = handle;
    });
    return found;
}

CUmemoryPool pool_numbered(std::uint32_t number) {
    CUmemoryPool found = nullptr;
    pools.each([&](CUmemoryPool handle, const Pool& pool) {
        if (pool.number == number) found = handle;
    });
    return found;
}

std::optional<Known> what_is(Address address) {
    Known known;
    known.address = address;
    if (const Found found = find_block(address)) {
        const BlockRecord& record = found.record;
        if (record.kind != BlockKind::Device && record.kind != BlockKind::Managed && record.kind != BlockKind::Pool &&
            record.kind != BlockKind::Global && record.kind != BlockKind::Imported && record.kind != BlockKind::Graph) {
            return std::nullopt;  // physical memory and arrays have no address that a program may use
        }
        known.base = found.base;
        known.size = record.asked;
        known.ordinal = found.gpu->ordinal;
        known.id = static_cast<unsigned long long>(found.gpu->ordinal + 1) << 40 | record.id;
        known.sync = record.sync_memops;
        known.managed = known.host_visible = record.kind == BlockKind::Managed;
        known.device_block = record.kind == BlockKind::Device;
        const std::lock_guard hold(driver().lock);
        if (record.kind == BlockKind::Pool) {
            known.pool = pool_numbered(record.owner);
        } else {
            known.context = context_numbered(record.owner);
        }
        return known;
    }
    HostBlock host;
    if (find_host_block(address, host)) {
        known.base = host.base;
        known.size = host.size;
        known.type = CU_MEMORYTYPE_HOST;
        known.context = host.context;
        known.id = host.id;
        known.host_visible = true;
        if (const Context* context = live_context(host.context)) known.ordinal = context->gpu->ordinal;
        return known;
    }
    Gpu* gpu = nullptr;
    if (find_mapping(address, known.base, known.size, gpu)) {
        known.ordinal = gpu->ordinal;
        known.id = known.base >> 21;
        return known;
    }
    return std::nullopt;
}

/// Whether kernels of the current context can use the address: memory of cuMemAlloc on another GPU, only if the context
/// that it is of has been made a peer.
CUresult usable_here(const Known& known) {
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return CUDA_ERROR_INVALID_CONTEXT;
    if (!known.device_block || context->gpu->ordinal == known.ordinal) return CUDA_SUCCESS;
    const std::lock_guard hold(driver().lock);
    return context->peers.count(known.context) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <typename T>
CUresult give(void* data, T value) {
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult set_sync_memops(const void* value, Address address) {
    const Found found = find_block(address);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    unsigned flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    const std::lock_guard hold(found.gpu->lock);
    const Block block = found.region->heap.at(found.base);  // again: another thread may have freed it
    if (!block) return CUDA_ERROR_INVALID_VALUE;
    block.record->sync_memops = flag != 0;
    return CUDA_SUCCESS;
}

CUresult attribute_of(const Known& known, CUpointer_attribute attribute, void* data) {
    switch (static_cast<int>(attribute)) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return give(data, known.context);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return give(data, static_cast<unsigned>(known.type));
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            if (const CUresult bad = usable_here(known); bad != CUDA_SUCCESS) return bad;
            return give(data, static_cast<CUdeviceptr>(known.address));
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (!known.host_visible) return CUDA_ERROR_INVALID_VALUE;
            return give(data, reinterpret_cast<void*>(known.address));
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return give(data, int{known.sync});
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return give(data, known.id);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return give(data, static_cast<unsigned char>(known.managed));
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return give(data, known.ordinal);
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return give(data, int{known.device_block});
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return give(data, static_cast<CUdeviceptr>(known.base));
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return give(data, known.size);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return give(data, int{1});
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return give(data, 0ULL);
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
            return give(data, int{0});
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return give(data, unsigned{usable_here(known) == CUDA_SUCCESS ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                                          : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE});
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return give(data, known.pool);
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return give(data, known.size);
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return give(data, static_cast<CUdeviceptr>(known.base));
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return give(data, known.id);
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            return give(data, int{0});
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS: {
            // Documented for memory of cuMemAlloc, and to make copies of it synchronous.
            const unsigned on = 1;
            if (!known.device_block) return CUDA_ERROR_INVALID_VALUE;
            if (const CUresult bad = set_sync_memops(&on, known.address); bad != CUDA_SUCCESS) return bad;
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

CUresult address_range(Address& base, std::size_t& size, Address address) {
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    const auto known = what_is(address);
    if (!known) return CUDA_ERROR_NOT_FOUND;  // page-locked host memory is known like any other
    base = known->base;
    size = known->size;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    CUSLICE_ENTER(cuMemGetAddressRange_v2)
    Address start = 0;
    std::size_t bytes = 0;
    if (const CUresult bad = address_range(start, bytes, address); bad != CUDA_SUCCESS) return bad;
    if (base != nullptr) *base = start;
    if (size != nullptr) *size = bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr_v1* base, unsigned int* size, CUdeviceptr_v1 address) {
    CUSLICE_ENTER(cuMemGetAddressRange)
    Address start = 0;
    std::size_t bytes = 0;
    if (const CUresult bad = address_range(start, bytes, address); bad != CUDA_SUCCESS) return bad;
    if (base != nullptr) *base = static_cast<CUdeviceptr_v1>(start);
    if (size != nullptr) *size = static_cast<unsigned>(bytes);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    CUSLICE_ENTER(cuPointerGetAttribute)
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto known = what_is(address);
    return known ? attribute_of(*known, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

// Documented: an address that isn't known, or an attribute that it hasn't, gives defaults and no error.
CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                        CUdeviceptr address) {
    CUSLICE_ENTER(cuPointerGetAttributes)
    if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
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

CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    CUSLICE_ENTER(cuPointerSetAttribute)
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    return set_sync_memops(value, address);
}

// This GPU exports no memory to other devices; what is documented of the arguments is checked all the same.
CUresult CUDAAPI cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t size,
                                               CUmemRangeHandleType type, unsigned long long flags) {
    CUSLICE_ENTER(cuMemGetHandleForAddressRange)
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
