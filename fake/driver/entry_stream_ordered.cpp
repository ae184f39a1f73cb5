// SPDX-License-Identifier: Apache-2.0
// Memory pools and stream-ordered allocation.

#include <algorithm>
#include <cstring>
#include <set>

#include "fake/driver/architecture.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/pool.h"
#include "fake/driver/sharing.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_capture.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/submit.h"

using namespace cuslice::fake;

namespace {

/// Addresses whose free is in a stream but not yet reached; the driver's lock is held.
auto& frees_under_way() {
    static auto* all = new std::set<Address>;
    return *all;
}

/// A capture forbids allocations on other streams than its own.
CUresult refuse_outside_capture(const Stream& stream) {
    return stream.capture != nullptr ? CUDA_SUCCESS : refuse_unsafe();
}

CUresult allocate_from(Pool* pool, CUdeviceptr* out, size_t bytes, Stream& stream) {
    if (stream.capture != nullptr && !stream.capture->active())
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    // H200, driver 580.159.04, 2026-11-27: no bytes are success and a null pointer, which is no memory of a graph
    // either.
    if (bytes == 0) {
        *out = 0;
        return CUDA_SUCCESS;
    }
    const bool captured = stream.capture != nullptr;
    if (captured && !pool->of_device())
        CUSLICE_UNSUPPORTED("capturing an allocation from a pool of host or managed memory");
    const Context* context = live_context(stream.context);
    if (context == nullptr)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    // A captured allocation is the graph's own: of the pool it has the device alone.
    if (!captured)
        return allocate_pooled(*pool, *context->gpu, bytes, *out);
    return capture_node(stream, [&](CUgraph graph, const Dependencies& after, CUgraphNode& node) {
        return add_memory_node(graph, after, *pool->gpu, bytes, *out, node);
    });
}

/// Late frees give their memory back before there is said to be none.
template <typename Allocate>
CUresult with_frees_done(Allocate allocate) {
    const CUresult result = allocate();
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !WorkQueue::late())
        return result;
    WorkQueue::finish_all();
    return allocate();
}

CUresult allocate_async(CUdeviceptr* out, size_t bytes, CUstream handle, DefaultStream form) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    CUSLICE_TRY(refuse_outside_capture(*stream));
    const Context* context = live_context(stream->context);
    if (context == nullptr)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return with_frees_done([&] {
        const DriverLock hold;
        return allocate_from(&current_pool(*context->gpu), out, bytes, *stream);
    });
}

CUresult allocate_from_pool(CUdeviceptr* out, size_t bytes, CUmemoryPool handle, CUstream stream_handle,
                            DefaultStream form) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, stream_handle, form);
    CUSLICE_TRY(refuse_outside_capture(*stream));
    return with_frees_done([&] {
        const DriverLock hold;
        CUSLICE_FIND_ARGUMENT(pool, pools, handle);
        if (!pool->usable())
            return CUDA_ERROR_INVALID_VALUE;
        return allocate_from(pool, out, bytes, *stream);
    });
}

CUresult free_async(CUdeviceptr address, CUstream handle, DefaultStream form) {
    CUSLICE_FIND_STREAM(stream, handle, form);
    if (stream->capture != nullptr && !stream->capture->active())
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Task done;
    {
        const DriverLock hold;
        const bool of_graph = is_graph_memory(address);
        if (of_graph && stream->capture != nullptr)
            return capture_node(*stream, [&](CUgraph graph, const Dependencies& after, CUgraphNode& node) {
                return add_free_node(graph, after, address, node);
            });
        if (of_graph) {
            CUSLICE_TRY(free_graph_memory(address, done));
        }
    }
    if (done)
        return submit(*stream, {CU_GRAPH_NODE_TYPE_MEM_FREE, std::move(done)});
    if (stream->capture != nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(refuse_unsafe());
    if (address == 0)
        return CUDA_SUCCESS;  // of an allocation of no bytes
    if (is_pool_import(address)) {
        return submit(*stream, {CU_GRAPH_NODE_TYPE_MEM_FREE, [address] { close_shared(address, true); }});
    }
    if (!is_pooled(address))
        return CUDA_ERROR_INVALID_VALUE;
    {
        const DriverLock hold;
        if (!frees_under_way().insert(address).second)
            return CUDA_ERROR_INVALID_VALUE;
    }
    const auto free_now = [address] {
        {
            const DriverLock hold;
            frees_under_way().erase(address);
        }
        free_pooled_now(address);
    };
    return submit(*stream, {CU_GRAPH_NODE_TYPE_MEM_FREE, free_now});
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
    uint64_t bytes = 0;
    int flag = 0;
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            std::memcpy(&flag, in, sizeof flag);
            pool.reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = flag;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            return give(&pool.threshold, *static_cast<const uint64_t*>(in));
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            std::memcpy(&bytes, in, sizeof bytes);
            if (bytes != 0)
                return CUDA_ERROR_INVALID_VALUE;  // a high mark can only be set back
            if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
                pool.reserved_high = pool.reserved;
            if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
                pool.used_high = pool.used;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

using PoolOf = Pool&(const CUmemLocation& place, CUmemAllocationType type, Gpu* gpu);

/// One of a place's pools: default_pool or current_pool.
CUresult pool_at(PoolOf& pool_of, CUmemoryPool* out, const CUmemLocation* location, CUmemAllocationType type) {
    Gpu* gpu = nullptr;
    if (out == nullptr || location == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemLocation place = *location;
    CUSLICE_TRY(find_place(place, type, gpu));
    const DriverLock hold;
    *out = pool_of(place, type, gpu).handle;
    return CUDA_SUCCESS;
}

CUresult set_current(const CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
    Gpu* gpu = nullptr;
    if (location == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemLocation place = *location;
    CUSLICE_TRY(find_place(place, type, gpu));
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    const CUmemPoolProps& props = pool->props;
    const bool same = props.location.type == place.type && props.location.id == place.id && props.allocType == type;
    if (!same || !pool->usable())
        return CUDA_ERROR_INVALID_VALUE;
    set_current_pool(*pool);
    return CUDA_SUCCESS;
}

constexpr CUmemLocation on_device(CUdevice device) { return {CU_MEM_LOCATION_TYPE_DEVICE, device}; }
constexpr auto kPinned = CU_MEM_ALLOCATION_TYPE_PINNED;

/// A pool's own place: it can always be read and written there.
bool is_own(const Pool& pool, const CUmemLocation& place) {
    return pool.gpu != nullptr && place.id == pool.gpu->ordinal;
}

}  // namespace

CUSLICE_STREAM_PAIR(cuMemAllocAsync, allocate_async, out, bytes, stream)
CUSLICE_STREAM_PAIR(cuMemAllocFromPoolAsync, allocate_from_pool, out, bytes, pool, stream)
CUSLICE_STREAM_PAIR(cuMemFreeAsync, free_async, address, stream)

CUSLICE_ENTRY(cuMemPoolCreate, out, props) {
    if (out == nullptr || props == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Gpu* gpu = nullptr;
    CUmemLocation place = props->location;
    const bool is_managed = props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    CUSLICE_TRY(find_place(place, props->allocType, gpu));
    // Documented: such memory can't be exported.
    if (place.type == CU_MEM_LOCATION_TYPE_HOST && props->handleTypes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((gpu == nullptr || is_managed) && props->handleTypes != 0)
        CUSLICE_UNSUPPORTED("cuMemPoolCreate of host or managed memory that is exported");
    if (is_managed && gpu != nullptr && !has_concurrent_managed_access(gpu->spec))
        CUSLICE_UNSUPPORTED("cuMemPoolCreate of managed memory on a GPU before Pascal");
    if ((props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        CUSLICE_UNSUPPORTED("cuMemPoolCreate of a pool that is exported as anything but a file descriptor");
    const DriverLock hold;
    if (gpu != nullptr) {
        CUSLICE_TRY(gpu->open());
    }
    Pool& pool = new_pool(gpu);
    pool.props = *props;
    pool.props.location = place;
    *out = pool.handle;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemPoolDestroy, handle) {
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    if (pool->doomed || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    return destroy_pool(*pool);
}

CUSLICE_ENTRY(cuMemPoolTrimTo, handle, keep) {
    CUSLICE_TRY(refuse_unsafe());
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    if (pool->doomed)
        return CUDA_ERROR_INVALID_VALUE;
    trim_pool(*pool, std::min<uint64_t>(keep, pool->reserved));
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemPoolGetAttribute, handle, attribute, value) {
    CUSLICE_TRY(refuse_unsafe());
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    if (value == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return get_attribute(*pool, attribute, value);
}

CUSLICE_ENTRY(cuMemPoolSetAttribute, handle, attribute, value) {
    CUSLICE_TRY(refuse_unsafe());
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    if (value == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return set_attribute(*pool, attribute, value);
}

CUSLICE_ENTRY(cuMemPoolSetAccess, handle, access, count) {
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    if (access == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (driver().gpu(access[i].location.id) == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        if (is_own(*pool, access[i].location) && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        pool->access[access[i].location.id] = access[i].flags;
    }
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemPoolGetAccess, flags, handle, location) {
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (driver().gpu(location->id) == nullptr)
        return CUDA_ERROR_INVALID_DEVICE;
    const auto found = pool->access.find(location->id);
    *flags = is_own(*pool, *location)      ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : found != pool->access.end() ? found->second
                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetDefaultMemPool, out, device) {
    const CUmemLocation place = on_device(device);
    return pool_at(default_pool, out, &place, kPinned);
}

CUSLICE_ENTRY(cuDeviceGetMemPool, out, device) {
    const CUmemLocation place = on_device(device);
    return pool_at(current_pool, out, &place, kPinned);
}

CUSLICE_ENTRY(cuDeviceSetMemPool, device, pool) {
    const CUmemLocation place = on_device(device);
    return set_current(&place, kPinned, pool);
}

CUSLICE_ENTRY(cuMemGetDefaultMemPool, out, location, type) { return pool_at(default_pool, out, location, type); }

CUSLICE_ENTRY(cuMemGetMemPool, out, location, type) { return pool_at(current_pool, out, location, type); }

CUSLICE_ENTRY(cuMemSetMemPool, location, type, pool) { return set_current(location, type, pool); }
