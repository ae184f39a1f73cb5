// Memory pools and stream-ordered allocation.

#include <algorithm>
#include <cstring>
#include <set>

#include "fake/driver/addresses.h"
#include "fake/driver/capture.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/pool.h"
#include "fake/driver/sharing.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

/// Addresses whose free is in a stream but not yet reached; the driver's lock is held.
std::set<Address>& frees_under_way() {
    static auto* all = new std::set<Address>;
    return *all;
}

/// A capture forbids allocations on other streams than its own.
CUresult refuse_outside_capture(const Stream& stream) {
    return stream.capture != nullptr ? CUDA_SUCCESS : refuse_unsafe();
}

CUresult allocate_from(Pool* pool, CUdeviceptr* out, size_t bytes, Stream& stream) {
    Address address = 0;
    if (stream.capture != nullptr && !stream.capture->active()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    // H200, driver 580.159.04, 2026-11-27: no bytes are success and a null pointer, which is no memory of a graph
    // either.
    if (bytes == 0) {
        *out = 0;
        return CUDA_SUCCESS;
    }
    // A captured allocation is the graph's own: of the pool it has the device alone.
    const CUresult result = stream.capture != nullptr
                                ? add_memory_node(stream.capture->graph, *pool->gpu, bytes, address)
                                : allocate_pooled(*pool, bytes, address);
    if (result == CUDA_SUCCESS) *out = address;
    return result;
}

/// Late frees give their memory back before there is said to be none.
template <typename Allocate>
CUresult with_frees_done(Allocate allocate) {
    const CUresult result = allocate();
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !WorkQueue::late()) return result;
    WorkQueue::finish_all();
    return allocate();
}

CUresult allocate_async(CUdeviceptr* out, size_t bytes, CUstream handle, DefaultStream form) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Stream, stream, find_stream(handle, form, stream));
    if (const CUresult bad = refuse_outside_capture(*stream); bad != CUDA_SUCCESS) return bad;
    const Context* context = live_context(stream->context);
    if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return with_frees_done([&] {
        const std::lock_guard hold(driver().lock);
        return allocate_from(&current_pool(*context->gpu), out, bytes, *stream);
    });
}

CUresult allocate_from_pool(CUdeviceptr* out, size_t bytes, CUmemoryPool handle, CUstream stream_handle,
                            DefaultStream form) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Stream, stream, find_stream(stream_handle, form, stream));
    if (const CUresult bad = refuse_outside_capture(*stream); bad != CUDA_SUCCESS) return bad;
    return with_frees_done([&] {
        const std::lock_guard hold(driver().lock);
        Pool* pool = pools.find(handle);
        if (pool == nullptr || pool->doomed || pool->imported) return CUDA_ERROR_INVALID_VALUE;
        return allocate_from(pool, out, bytes, *stream);
    });
}

CUresult free_async(CUdeviceptr address, CUstream handle, DefaultStream form) {
    CUSLICE_FIND(Stream, stream, find_stream(handle, form, stream));
    if (stream->capture != nullptr && !stream->capture->active()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Task done;
    {
        const std::lock_guard hold(driver().lock);
        const bool of_graph = is_graph_memory(address);
        if (of_graph && stream->capture != nullptr) return add_free_node(stream->capture->graph, address);
        if (of_graph) {
            if (const CUresult bad = free_graph_memory(address, done); bad != CUDA_SUCCESS) return bad;
        }
    }
    if (done) return submit(*stream, CU_GRAPH_NODE_TYPE_MEM_FREE, std::move(done));
    if (stream->capture != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) return bad;
    if (address == 0) return CUDA_SUCCESS;  // of an allocation of no bytes
    const Found found = find_block(address);
    if (is_pool_import(address)) {
        return submit(*stream, CU_GRAPH_NODE_TYPE_MEM_FREE, [address] { close_shared(address, true); });
    }
    if (!found || found.base != address || found.record.kind != BlockKind::Pool) return CUDA_ERROR_INVALID_VALUE;
    {
        const std::lock_guard hold(driver().lock);
        if (!frees_under_way().insert(address).second) return CUDA_ERROR_INVALID_VALUE;
    }
    Gpu* gpu = found.gpu;
    return submit(*stream, CU_GRAPH_NODE_TYPE_MEM_FREE, [gpu, address] {
        {
            const std::lock_guard hold(driver().lock);
            frees_under_way().erase(address);
        }
        free_pooled_now(*gpu, address);
    });
}

template <typename T>
CUresult give(void* out, T value) {
    std::memcpy(out, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult get_attribute(const Pool& pool, CUmemPool_attribute attribute, void* out) {
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            return give(out, pool.reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES]);
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            return give(out, pool.threshold);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            return give(out, pool.reserved);
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            return give(out, pool.reserved_high);
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            return give(out, pool.used);
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            return give(out, pool.used_high);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult set_attribute(Pool& pool, CUmemPool_attribute attribute, const void* in) {
    std::uint64_t bytes = 0;
    int flag = 0;
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            std::memcpy(&flag, in, sizeof flag);
            pool.reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = flag;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            return give(&pool.threshold, *static_cast<const std::uint64_t*>(in));
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            std::memcpy(&bytes, in, sizeof bytes);
            if (bytes != 0) return CUDA_ERROR_INVALID_VALUE;  // a high mark can only be set back
            if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool.reserved_high = pool.reserved;
            if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool.used_high = pool.used;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// One of a device's pools: default_pool or current_pool.
template <auto kPool>
CUresult pool_of(CUmemoryPool* out, CUdevice device) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    const std::lock_guard hold(driver().lock);
    *out = kPool(*gpu).handle;
    return CUDA_SUCCESS;
}

CUresult set_current(CUdevice device, CUmemoryPool handle) {
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    const std::lock_guard hold(driver().lock);
    const Pool* pool = pools.find(handle);
    if (pool == nullptr || pool->doomed || pool->imported || pool->gpu != gpu) return CUDA_ERROR_INVALID_VALUE;
    set_current_pool(*gpu, handle);
    return CUDA_SUCCESS;
}

/// The 13.0 forms name a place; only devices' ordinary memory is there.
bool on_device(const CUmemLocation* location, CUmemAllocationType type) {
    return location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
           type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

}  // namespace

CUSLICE_STREAM_PAIR(cuMemAllocAsync, allocate_async, out, bytes, stream)
CUSLICE_STREAM_PAIR(cuMemAllocFromPoolAsync, allocate_from_pool, out, bytes, pool, stream)
CUSLICE_STREAM_PAIR(cuMemFreeAsync, free_async, address, stream)

CUSLICE_ENTRY(cuMemPoolCreate, out, props) {
    if (out == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) CUSLICE_UNSUPPORTED("cuMemPoolCreate in host memory");
    if ((props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        CUSLICE_UNSUPPORTED("cuMemPoolCreate of a pool that is exported as anything but a file descriptor");
    CUSLICE_FIND(Gpu, gpu, find_gpu(props->location.id, gpu));
    const std::lock_guard hold(driver().lock);
    if (const CUresult bad = gpu->open(); bad != CUDA_SUCCESS) return bad;
    Pool& pool = new_pool(*gpu);
    pool.props = *props;
    *out = pool.handle;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemPoolDestroy, handle) {
    const std::lock_guard hold(driver().lock);
    Pool* pool = pools.find(handle);
    if (pool == nullptr || pool->doomed || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
    return destroy_pool(*pool);
}

CUSLICE_ENTRY(cuMemPoolTrimTo, handle, keep) {
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) return bad;
    const std::lock_guard hold(driver().lock);
    Pool* pool = pools.find(handle);
    if (pool == nullptr || pool->doomed) return CUDA_ERROR_INVALID_VALUE;
    trim_pool(*pool, std::min<std::uint64_t>(keep, pool->reserved));
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemPoolGetAttribute, handle, attribute, value) {
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) return bad;
    const std::lock_guard hold(driver().lock);
    const Pool* pool = pools.find(handle);
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return get_attribute(*pool, attribute, value);
}

CUSLICE_ENTRY(cuMemPoolSetAttribute, handle, attribute, value) {
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS) return bad;
    const std::lock_guard hold(driver().lock);
    Pool* pool = pools.find(handle);
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return set_attribute(*pool, attribute, value);
}

CUSLICE_ENTRY(cuMemPoolSetAccess, handle, access, count) {
    const std::lock_guard hold(driver().lock);
    Pool* pool = pools.find(handle);
    if (pool == nullptr || access == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
        if (driver().gpu(access[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        const bool own = access[i].location.id == pool->gpu->ordinal;
        if (own && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
        pool->access[access[i].location.id] = access[i].flags;
    }
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemPoolGetAccess, flags, handle, location) {
    const std::lock_guard hold(driver().lock);
    const Pool* pool = pools.find(handle);
    if (pool == nullptr || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (driver().gpu(location->id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const auto found = pool->access.find(location->id);
    const bool own = location->id == pool->gpu->ordinal;
    *flags = own                           ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : found != pool->access.end() ? found->second
                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetDefaultMemPool, out, device) { return pool_of<default_pool>(out, device); }

CUSLICE_ENTRY(cuDeviceGetMemPool, out, device) { return pool_of<current_pool>(out, device); }

CUSLICE_ENTRY(cuDeviceSetMemPool, device, pool) { return set_current(device, pool); }

CUSLICE_ENTRY(cuMemGetDefaultMemPool, out, location, type) {
    if (!on_device(location, type)) CUSLICE_UNSUPPORTED("cuMemGetDefaultMemPool of anything but a device's memory");
    return pool_of<default_pool>(out, location->id);
}

CUSLICE_ENTRY(cuMemGetMemPool, out, location, type) {
    if (!on_device(location, type)) CUSLICE_UNSUPPORTED("cuMemGetMemPool of anything but a device's memory");
    return pool_of<current_pool>(out, location->id);
}

CUSLICE_ENTRY(cuMemSetMemPool, location, type, pool) {
    if (!on_device(location, type)) CUSLICE_UNSUPPORTED("cuMemSetMemPool of anything but a device's memory");
    return set_current(location->id, pool);
}
