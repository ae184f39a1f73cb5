// SPDX-License-Identifier: Apache-2.0
// Two GPUs and a third one: the first two may be parts of one, the third is a GPU of its own.
#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

void between(CUdevice from, CUdevice to) {
    const Scope scope(device(from) + " to " + device(to));
    int value = 0;
    ASK(cuDeviceCanAccessPeer, (&value, from, to), number(value));
    for (int attribute = CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
         attribute <= CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED; attribute++) {
        const auto which = static_cast<CUdevice_P2PAttribute>(attribute);
        ASK(cuDeviceGetP2PAttribute, (&value, which, from, to), number(value));
    }
}

void access(CUdeviceptr address) {
    for (const CUdevice ordinal : {0, 1, 2}) {
        const Scope scope(device(ordinal));
        const CUmemLocation place = on(ordinal);
        unsigned long long flags = 9;
        ASK(cuMemGetAccess, (&flags, &place, address), number(static_cast<long long>(flags)));
    }
}

}  // namespace

void third() {
    start();
    int count = 0;
    ASK(cuDeviceGetCount, (&count), number(count));
    CUcontext contexts[3] = {}, own = nullptr, now = nullptr;
    CUdeviceptr blocks[3] = {}, managed = 0;
    for (const CUdevice ordinal : {0, 1, 2}) {
        const Scope scope(device(ordinal));
        const std::string name = number(ordinal);
        CUuuid its{};
        CUdevice where = -1;
        size_t bytes = 0;
        ASK(cuDeviceGetUuid_v2, (&its, ordinal), uuid(its));
        ASK(cuDeviceTotalMem_v2, (&bytes, ordinal), number(static_cast<long long>(bytes)));
        ASK(cuDevicePrimaryCtxRetain, (&contexts[ordinal], ordinal), as("P" + name, contexts[ordinal]));
        ASK(cuCtxSetCurrent, (contexts[ordinal]));
        ASK(cuCtxGetDevice, (&where), device(where));
        ASK(cuMemAlloc_v2, (&blocks[ordinal], kBlock), as_block("block " + name, blocks[ordinal], kBlock));
    }
    for (const CUdevice from : {0, 1, 2})
        for (const CUdevice to : {0, 1, 2})
            if (from != to)
                between(from, to);
    ASK(cuMemAllocManaged, (&managed, kBlock, CU_MEM_ATTACH_GLOBAL), as_block("managed", managed, kBlock));
    for (const CUdevice to : {0, 1, 2}) {
        const Scope scope("to " + device(to));
        ASK(cuMemAdvise, (managed, kBlock, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, to));
        ASK(cuMemPrefetchAsync_v2, (managed, kBlock, on(to), 0, nullptr));
    }
    for (const CUdevice from : {0, 1, 2})
        for (const CUdevice to : {0, 1, 2}) {
            const Scope scope(device(from) + " to " + device(to));
            CUdevice where = -1;
            unsigned value = 0;
            cuCtxSetCurrent(contexts[from]);
            cuMemsetD32_v2(blocks[from], 10u * static_cast<unsigned>(from) + static_cast<unsigned>(to), kBlock / 4);
            cuCtxSynchronize();
            ASK(cuMemcpyPeer, (blocks[to], contexts[to], blocks[from], contexts[from], kBlock));
            ASK(cuMemcpyDtoD_v2, (blocks[to], blocks[from], kBlock));
            ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, blocks[to]), device(where));
            cuCtxSetCurrent(contexts[to]);
            ASK(cuMemcpyDtoH_v2, (&value, blocks[to], sizeof value), number(value));
        }
    // Access is each context's own, and goes with it, though a sibling's to the same GPU stays.
    for (const CUdevice from : {0, 1}) {
        const Scope scope("from " + device(from));
        ASK(cuCtxSetCurrent, (contexts[from]));
        ASK(cuCtxEnablePeerAccess, (contexts[2], 0));
        ASK(cuCtxEnablePeerAccess, (contexts[2], 0));
    }
    ASK(cuCtxSetCurrent, (contexts[0]));
    ASK(cuCtxDisablePeerAccess, (contexts[2]));
    ASK(cuCtxDisablePeerAccess, (contexts[2]));
    ASK(cuCtxSetCurrent, (contexts[1]));
    ASK(cuCtxEnablePeerAccess, (contexts[2], 0));
    ASK(cuCtxDisablePeerAccess, (contexts[2]));
    for (const CUdevice of : {0, 1}) {
        const Scope scope("a context of " + device(of) + " that ends");
        ASK(cuCtxCreate_v2, (&own, 0, of), as("own", own));
        ASK(cuCtxEnablePeerAccess, (contexts[2], 0));
        ASK(cuCtxSetCurrent, (contexts[2]));
        ASK(cuCtxEnablePeerAccess, (own, 0));
        ASK(cuCtxSetCurrent, (own));
        ASK(cuCtxDestroy_v2, (own));
        ASK(cuCtxSetCurrent, (contexts[of]));
        ASK(cuCtxEnablePeerAccess, (contexts[2], 0));
        ASK(cuCtxDisablePeerAccess, (contexts[2]));
        ASK(cuCtxDisablePeerAccess, (contexts[2]));
        ASK(cuCtxSetCurrent, (contexts[2]));
        ASK(cuCtxEnablePeerAccess, (contexts[of], 0));
        ASK(cuCtxDisablePeerAccess, (contexts[of]));
    }
    // Access of a partition to the third GPU's memory, and of the third GPU to a partition's.
    CUmemAllocationProp wish{};
    wish.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    for (const CUdevice of : {1, 2}) {
        const Scope scope("piece of " + device(of));
        CUmemGenericAllocationHandle piece = 0;
        CUdeviceptr range = 0;
        wish.location = on(of);
        const CUmemAccessDesc from1{on(1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        const CUmemAccessDesc from2{on(2), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        const CUmemAccessDesc not2{on(2), CU_MEM_ACCESS_FLAGS_PROT_NONE}, read2{on(2), CU_MEM_ACCESS_FLAGS_PROT_READ};
        const CUmemAccessDesc both[] = {from1, from2};
        ASK(cuMemCreate, (&piece, kBlock, &wish, 0), "made");
        ASK(cuMemAddressReserve, (&range, kBlock, 0, 0, 0), as_block("range", range, kBlock));
        ASK(cuMemMap, (range, kBlock, 0, piece, 0));
        ASK(cuMemSetAccess, (range, kBlock, both, 2));
        ASK(cuMemSetAccess, (range, kBlock, &read2, 1));
        access(range);
        ASK(cuMemSetAccess, (range, kBlock, &not2, 1));
        access(range);
        ASK(cuMemUnmap, (range, kBlock));
        ASK(cuMemRelease, (piece));
        ASK(cuMemAddressFree, (range, kBlock));
        CUmemPoolProps properties{};
        CUmemoryPool pool = nullptr;
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = on(of);
        ASK(cuMemPoolCreate, (&pool, &properties), as("pool", pool));
        ASK(cuMemPoolSetAccess, (pool, both, 2));
        for (const CUdevice ordinal : {of, of == 2 ? 1 : 2}) {
            const Scope from(device(ordinal));
            CUmemLocation place = on(ordinal);
            CUmemAccess_flags flags{};
            ASK(cuMemPoolGetAccess, (&flags, pool, &place), number(flags));
        }
        ASK(cuDeviceSetMemPool, (of == 2 ? 1 : 2, pool));
        ASK(cuMemPoolDestroy, (pool));
    }
    ASK(cuDevicePrimaryCtxReset_v2, (2));
    ASK(cuCtxSetCurrent, (contexts[1]));
    unsigned value = 0;
    ASK(cuMemcpyDtoH_v2, (&value, blocks[1], sizeof value));
    ASK(cuMemcpyDtoH_v2, (&value, blocks[2], sizeof value));
    for (const CUdevice ordinal : {0, 1, 2})
        ASK(cuDevicePrimaryCtxRelease_v2, (ordinal));
    ASK(cuCtxGetCurrent, (&now), now ? "one" : "none");
}

}  // namespace conformance
