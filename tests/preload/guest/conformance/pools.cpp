// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory: a GPU's pools.
#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

CUmemPoolProps wish(CUmemLocation place) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = place;
    return properties;
}

long long held(CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t bytes = 0;
    return cuMemPoolGetAttribute(pool, which, &bytes) == CUDA_SUCCESS ? static_cast<long long>(bytes) : -1;
}

void told(CUmemoryPool pool) {
    const Scope scope(named(pool));
    cuuint64_t value = 0;
    int yes = 0;
    ASK(cuMemPoolGetAttribute, (pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), number(static_cast<long long>(value)));
    ASK(cuMemPoolGetAttribute, (pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value), number(static_cast<long long>(value)));
    ASK(cuMemPoolGetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
        number(static_cast<long long>(value)));
    ASK(cuMemPoolGetAttribute, (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &yes), number(yes));
    for (const CUdevice ordinal : {0, 1, 2}) {
        CUmemLocation place = on(ordinal);
        CUmemAccess_flags flags{};
        const Scope from(device(ordinal));
        ASK(cuMemPoolGetAccess, (&flags, pool, &place), number(flags));
    }
}

}  // namespace

void pools() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    CUmemoryPool d0 = nullptr, d1 = nullptr, own = nullptr, other = nullptr, found = nullptr;
    // A pool needs no context.
    ASK(cuDeviceGetDefaultMemPool, (&d0, 0), as("default of 0", d0));
    ASK(cuDeviceGetDefaultMemPool, (&d1, 1), as("default of 1", d1));
    ASK(cuDeviceGetDefaultMemPool, (&found, 0), named(found));
    for (const CUdevice ordinal : {0, 1, 2, -1}) {
        const Scope scope(device(ordinal));
        CUmemLocation place = on(ordinal);
        ASK(cuDeviceGetDefaultMemPool, (&found, ordinal), named(found));
        ASK(cuDeviceGetMemPool, (&found, ordinal), named(found));
        ASK(cuMemGetDefaultMemPool, (&found, &place, CU_MEM_ALLOCATION_TYPE_PINNED), named(found));
        ASK(cuMemGetMemPool, (&found, &place, CU_MEM_ALLOCATION_TYPE_PINNED), named(found));
        ASK(cuDeviceSetMemPool, (ordinal, d1));
        ASK(cuMemSetMemPool, (&place, CU_MEM_ALLOCATION_TYPE_PINNED, d0));
        ASK(cuDeviceGetDefaultMemPool, (nullptr, ordinal));
        ASK(cuDeviceGetMemPool, (nullptr, ordinal));
        ASK(cuDeviceSetMemPool, (ordinal, nullptr));
        const CUmemPoolProps properties = wish(place);
        if (ordinal != 0 && ordinal != 1)
            ASK(cuMemPoolCreate, (&found, &properties));
    }
    ASK(cuMemPoolDestroy, (d1));
    ASK(cuMemPoolDestroy, (nullptr));
    const CUmemPoolProps on0 = wish(on(0)), on1 = wish(on(1)), nowhere = wish({});
    CUmemPoolProps managed_one = wish(on(1));
    managed_one.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    ASK(cuMemPoolCreate, (&other, &on0), as("own of 0", other));
    ASK(cuMemPoolCreate, (&own, &on1), as("own of 1", own));
    ASK(cuMemPoolCreate, (&found, &nowhere));
    ASK(cuMemPoolCreate, (&found, &managed_one));
    ASK(cuMemPoolCreate, (nullptr, &on1));
    ASK(cuMemPoolCreate, (&found, nullptr));
    for (const CUmemoryPool pool : {d0, d1, own, other})
        told(pool);
    ASK(cuDeviceSetMemPool, (1, own));
    ASK(cuDeviceGetMemPool, (&found, 1), named(found));
    ASK(cuDeviceGetMemPool, (&found, 0), named(found));
    ASK(cuDeviceSetMemPool, (1, other));
    ASK(cuDeviceSetMemPool, (0, own));
    ASK(cuDeviceGetMemPool, (&found, 1), named(found));

    const CUmemAccessDesc from0{on(0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAccessDesc from1{on(1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAccessDesc not0{on(0), CU_MEM_ACCESS_FLAGS_PROT_NONE}, not1{on(1), CU_MEM_ACCESS_FLAGS_PROT_NONE};
    const CUmemAccessDesc wrong{on(2), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAccessDesc read0{on(0), CU_MEM_ACCESS_FLAGS_PROT_READ};
    const CUmemAccessDesc both[] = {from0, from1};
    ASK(cuMemPoolSetAccess, (own, &from0, 1));
    told(own);
    ASK(cuMemPoolSetAccess, (own, &not0, 1));
    told(own);
    ASK(cuMemPoolSetAccess, (own, &not1, 1));
    ASK(cuMemPoolSetAccess, (own, &from1, 1));
    ASK(cuMemPoolSetAccess, (own, &read0, 1));
    told(own);
    ASK(cuMemPoolSetAccess, (own, both, 2));
    ASK(cuMemPoolSetAccess, (own, &wrong, 1));
    ASK(cuMemPoolSetAccess, (own, nullptr, 1));
    ASK(cuMemPoolSetAccess, (own, both, 0));
    ASK(cuMemPoolSetAccess, (nullptr, both, 2));
    CUmemAccess_flags flags{};
    CUmemLocation place = on(1);
    ASK(cuMemPoolGetAccess, (nullptr, own, &place));
    ASK(cuMemPoolGetAccess, (&flags, own, nullptr));
    ASK(cuMemPoolGetAccess, (&flags, nullptr, &place));

    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    CUdeviceptr x = 0, y = 0;
    ASK(cuCtxSetCurrent, (p1));
    ASK(cuMemAllocAsync, (&x, kBlock, nullptr), as_block("X", x, kBlock));
    ASK(cuPointerGetAttribute, (&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, x), named(found));
    ASK(cuMemAllocFromPoolAsync, (&y, kBlock, other, nullptr), as_block("Y", y, kBlock));
    CUdevice where = -1;
    ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, y), device(where));
    ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x), device(where));
    ASK(cuMemPoolDestroy, (own));
    ASK(cuDeviceGetMemPool, (&found, 1), named(found));
    ASK(cuMemPoolDestroy, (own));
    ASK(cuDeviceSetMemPool, (1, own));
    ASK(cuMemFreeAsync, (x, nullptr));
    ASK(cuMemFreeAsync, (y, nullptr));
    ASK(cuStreamSynchronize, (nullptr));
    ASK(cuMemPoolTrimTo, (other, 0));
    ASK(cuMemPoolDestroy, (other));
    ASK(cuMemPoolTrimTo, (d1, 0));
}

void streams_of_pools() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    CUmemoryPool d0 = nullptr, d1 = nullptr, found = nullptr;
    CUstream s0 = nullptr, s1 = nullptr;
    CUdeviceptr x = 0;
    CUdevice where = -1;
    ASK(cuMemAllocAsync, (&x, kBlock, nullptr));
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuDeviceGetDefaultMemPool, (&d0, 0), as("default of 0", d0));
    ASK(cuDeviceGetDefaultMemPool, (&d1, 1), as("default of 1", d1));
    cuCtxSetCurrent(p0);
    ASK(cuStreamCreate, (&s0, CU_STREAM_NON_BLOCKING), as("S0", s0));
    cuCtxSetCurrent(p1);
    ASK(cuStreamCreate, (&s1, CU_STREAM_NON_BLOCKING), as("S1", s1));
    for (const CUcontext current : {p0, p1})
        for (const CUstream stream : {s0, s1, CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
            const Scope scope("current " + named(current) + ": stream " +
                              (stream == CU_STREAM_PER_THREAD ? "per thread" : named(stream)));
            cuCtxSetCurrent(current);
            ASK(cuMemAllocAsync, (&x, kBlock, stream), as_block("X", x, kBlock));
            ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x), device(where));
            ASK(cuPointerGetAttribute, (&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, x), named(found));
            ASK(cuMemFreeAsync, (x, stream));
            ASK(cuStreamSynchronize, (stream));
            ASK(cuMemAllocAsync_ptsz, (&x, kBlock, stream), as_block("X", x, kBlock));
            ASK(cuPointerGetAttribute, (&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, x), named(found));
            ASK(cuMemFreeAsync_ptsz, (x, stream));
            ASK(cuCtxSynchronize, ());
            for (const CUmemoryPool pool : {d0, d1}) {
                const Scope of(named(pool));
                say("used", "", CUDA_SUCCESS,
                    [&] { return Words{number(held(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT))}; });
            }
            ASK(cuMemAllocAsync, (nullptr, kBlock, stream));
            ASK(cuMemAllocAsync, (&x, 0, stream));
        }
    ASK(cuMemAllocAsync, (&x, kBlock, reinterpret_cast<CUstream>(0x7770)));
    cuCtxSetCurrent(nullptr);
    ASK(cuMemAllocAsync, (&x, kBlock, s1), as_block("X", x, kBlock));
    ASK(cuMemFreeAsync, (x, s1));
    ASK(cuMemAllocAsync, (&x, kBlock, nullptr));
    // A device's pool and its blocks after a reset.
    cuCtxSetCurrent(p1);
    ASK(cuMemAllocAsync, (&x, kBlock, nullptr), as_block("X", x, kBlock));
    ASK(cuDevicePrimaryCtxReset_v2, (1));
    cuCtxSetCurrent(p0);
    ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x), device(where));
    ASK(cuMemAllocAsync, (&x, kBlock, s0), as_block("X", x, kBlock));
    ASK(cuMemFreeAsync, (x, s0));
    ASK(cuMemAllocAsync, (&x, kBlock, s1));
}

}  // namespace conformance
