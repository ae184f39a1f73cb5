// SPDX-License-Identifier: Apache-2.0
// Attributes of memory, and the places of managed memory.
#include <algorithm>

#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

void asked(const std::string& name, CUdeviceptr address) {
    const Scope scope(name);
    CUcontext context = nullptr;
    CUdevice ordinal = -1;
    CUdeviceptr pointer = 0;
    size_t size = 0;
    unsigned kind = 0;
    int yes = 0;
    CUmemoryPool pool = nullptr;
    unsigned long long buffer = 0, flags = 0;
    ASK(cuPointerGetAttribute, (&context, CU_POINTER_ATTRIBUTE_CONTEXT, address), named(context));
    ASK(cuPointerGetAttribute, (&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address), device(ordinal));
    ASK(cuPointerGetAttribute, (&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), number(kind));
    ASK(cuPointerGetAttribute, (&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address), block(pointer));
    ASK(cuPointerGetAttribute, (&pointer, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address), block(pointer));
    ASK(cuPointerGetAttribute, (&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address), number(static_cast<long long>(size)));
    ASK(cuPointerGetAttribute, (&buffer, CU_POINTER_ATTRIBUTE_BUFFER_ID, address), buffer ? "a number" : "0");
    ASK(cuPointerGetAttribute, (&yes, CU_POINTER_ATTRIBUTE_IS_MANAGED, address), number(yes));
    ASK(cuPointerGetAttribute, (&yes, CU_POINTER_ATTRIBUTE_MAPPED, address), number(yes));
    ASK(cuPointerGetAttribute, (&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), named(pool));
    ASK(cuPointerGetAttribute, (&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address),
        number(static_cast<long long>(flags)));
    ASK(cuPointerGetAttribute, (&yes, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address), number(yes));
    ASK(cuPointerGetAttribute, (nullptr, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
    context = nullptr;
    ordinal = -1;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void* data[] = {&ordinal, &kind, &context, &yes};
    ASK(cuPointerGetAttributes, (4, which, data, address), device(ordinal), number(kind), named(context), number(yes));
    ASK(cuPointerGetAttributes, (0, which, data, address));
    ASK(cuPointerGetAttributes, (4, nullptr, data, address));
    unsigned sync = 1;
    ASK(cuPointerSetAttribute, (&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address));
    CUdeviceptr base = 0;
    ASK(cuMemGetAddressRange_v2, (&base, &size, address), block(base), number(static_cast<long long>(size)));
}

}  // namespace

void pointers() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, a = nullptr;
    CUdeviceptr blocks[8] = {};
    size_t pitch = 0;
    void *host = nullptr, *pinned = nullptr;
    static char registered[8192];
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxCreate_v2, (&a, 0, 1), as("A", a));
    ASK(cuMemAlloc_v2, (&blocks[0], kBlock), as_block("of A", blocks[0], kBlock));
    ASK(cuCtxSetCurrent, (p1));
    ASK(cuMemAlloc_v2, (&blocks[1], kBlock), as_block("of P1", blocks[1], kBlock));
    ASK(cuMemAllocPitch_v2, (&blocks[2], &pitch, 100, 100, 4), as_block("pitched", blocks[2], pitch * 100));
    ASK(cuMemAllocManaged, (&blocks[3], kBlock, CU_MEM_ATTACH_GLOBAL), as_block("managed", blocks[3], kBlock));
    ASK(cuMemAllocAsync, (&blocks[4], kBlock, nullptr), as_block("async", blocks[4], kBlock));
    ASK(cuMemHostAlloc, (&host, 8192, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
        as_block("host", reinterpret_cast<CUdeviceptr>(host), 8192));
    ASK(cuMemAllocHost_v2, (&pinned, 8192), as_block("pinned", reinterpret_cast<CUdeviceptr>(pinned), 8192));
    ASK(cuMemHostRegister_v2, (registered, sizeof registered, CU_MEMHOSTREGISTER_PORTABLE),
        as_block("registered", reinterpret_cast<CUdeviceptr>(registered), sizeof registered));
    ASK(cuCtxSetCurrent, (p0));
    ASK(cuMemAlloc_v2, (&blocks[5], kBlock), as_block("of P0", blocks[5], kBlock));
    ASK(cuMemAllocAsync, (&blocks[6], kBlock, nullptr), as_block("async of P0", blocks[6], kBlock));
    for (const CUcontext current : {p1, p0, a, CUcontext{nullptr}}) {
        const Scope scope("current " + named(current));
        cuCtxSetCurrent(current);
        for (const CUdeviceptr block : blocks)
            if (block)
                asked(conformance::block(block), block);
        asked("inside", blocks[1] + 100);
        asked("host", reinterpret_cast<CUdeviceptr>(host));
        asked("pinned", reinterpret_cast<CUdeviceptr>(pinned));
        asked("registered", reinterpret_cast<CUdeviceptr>(registered));
        asked("nothing", 0x10);
        CUdeviceptr seen = 0;
        unsigned flags = 0;
        ASK(cuMemHostGetDevicePointer_v2, (&seen, host, 0), block(seen));
        ASK(cuMemHostGetFlags, (&flags, host), number(flags));
    }
    {
        const Scope scope("freed where another is current");
        ASK(cuCtxSetCurrent, (p0));
        ASK(cuMemFree_v2, (blocks[0]));
        ASK(cuMemFree_v2, (blocks[0]));
        ASK(cuMemFree_v2, (blocks[1]));
        ASK(cuMemFree_v2, (blocks[2] + 4));
        ASK(cuMemFree_v2, (blocks[2]));
        ASK(cuMemFree_v2, (blocks[3]));
        ASK(cuMemFreeAsync, (blocks[4], nullptr));
        ASK(cuMemFreeAsync, (blocks[6], nullptr));
        ASK(cuCtxSetCurrent, (nullptr));
        ASK(cuMemFree_v2, (blocks[5]));
        ASK(cuMemFreeHost, (host));
        ASK(cuMemFreeHost, (pinned));
        ASK(cuMemHostUnregister, (registered));
        ASK(cuMemFree_v2, (0));
        ASK(cuCtxSetCurrent, (p1));
        ASK(cuMemFree_v2, (blocks[5]));
        ASK(cuMemFreeHost, (host));
        ASK(cuMemFreeHost, (pinned));
        ASK(cuMemHostUnregister, (registered));
        ASK(cuMemFree_v2, (0));
    }
    for (const CUcontext current : {p0, p1, a}) {
        const Scope scope("current " + named(current));
        size_t free = 0, total = 0, after = 0;
        CUdeviceptr big = 0;
        cuCtxSetCurrent(current);
        ASK(cuMemGetInfo_v2, (&free, &total), number(static_cast<long long>(total)), free < total ? "less" : "all");
        ASK(cuMemAlloc_v2, (&big, 64 * kBlock), as_block("big", big, 64 * kBlock));
        ASK(cuMemGetInfo_v2, (&after, &total), number(static_cast<long long>(free - after)));
        ASK(cuMemAlloc_v2, (&blocks[7], total));
        ASK(cuMemAlloc_v2, (&blocks[7], 0));
        ASK(cuMemFree_v2, (big));
        ASK(cuMemGetInfo_v2, (&after, &total), number(static_cast<long long>(free - after)));
    }
    size_t free = 0, total = 0;
    cuCtxSetCurrent(nullptr);
    ASK(cuMemGetInfo_v2, (&free, &total));
    ASK(cuMemAlloc_v2, (&blocks[7], kBlock));
}

void managed() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    CUdeviceptr m = 0, d = 0;
    CUstream stream = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxSetCurrent, (p1));
    ASK(cuMemAllocManaged, (&m, 4 * kBlock, CU_MEM_ATTACH_GLOBAL), as_block("M", m, 4 * kBlock));
    ASK(cuMemAlloc_v2, (&d, kBlock), as_block("D", d, kBlock));
    ASK(cuStreamCreate, (&stream, 0), as("stream", stream));
    const auto told = [&] {
        const Scope scope("M");
        int value = -5;
        int accessed[4] = {-5, -5, -5, -5};
        CUmemLocationType type{};
        ASK(cuMemRangeGetAttribute, (&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, kBlock),
            number(value));
        ASK(cuMemRangeGetAttribute, (&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, kBlock),
            number(value));
        ASK(cuMemRangeGetAttribute, (&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, kBlock),
            number(value));
        ASK(cuMemRangeGetAttribute, (&type, sizeof type, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, m, kBlock),
            number(type));
        ASK(cuMemRangeGetAttribute, (&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, m, kBlock),
            type == CU_MEM_LOCATION_TYPE_DEVICE ? number(value) : "of no GPU");
        ASK(cuMemRangeGetAttribute, (&type, sizeof type, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, m, kBlock),
            number(type));
        ASK(cuMemRangeGetAttribute, (&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, m, kBlock),
            type == CU_MEM_LOCATION_TYPE_DEVICE ? number(value) : "of no GPU");
        ASK(cuMemRangeGetAttribute, (accessed, sizeof accessed, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, kBlock),
            number(accessed[0]), number(accessed[1]), number(accessed[2]), number(accessed[3]));
        int preferred = -5, mostly = -5;
        void* data[] = {&preferred, &mostly};
        size_t sizes[] = {sizeof preferred, sizeof mostly};
        CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY};
        ASK(cuMemRangeGetAttributes, (data, sizes, which, 2, m, kBlock), number(preferred), number(mostly));
        ASK(cuMemRangeGetAttribute, (nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, kBlock));
        ASK(cuMemRangeGetAttribute, (&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, kBlock));
        ASK(cuMemRangeGetAttribute, (&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, d, kBlock));
    };
    told();
    for (const CUdevice to : {1, 0, CU_DEVICE_CPU}) {
        const Scope scope("to " + device(to));
        const CUmemLocation place = to == CU_DEVICE_CPU ? host() : on(to);
        ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, to));
        told();
        ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_SET_ACCESSED_BY, to));
        told();
        ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_UNSET_ACCESSED_BY, to));
        ASK(cuMemAdvise_v2, (m, kBlock, CU_MEM_ADVISE_SET_ACCESSED_BY, place));
        ASK(cuMemPrefetchAsync, (m, kBlock, to, stream));
        ASK(cuMemPrefetchAsync_ptsz, (m, kBlock, to, stream));
        ASK(cuStreamSynchronize, (stream));
        told();
        ASK(cuMemAdvise_v2, (m, kBlock, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place));
        ASK(cuMemPrefetchAsync_v2, (m, kBlock, place, 0, stream));
        ASK(cuMemPrefetchAsync_v2_ptsz, (m, kBlock, place, 0, stream));
        ASK(cuStreamSynchronize, (stream));
        told();
        ASK(cuMemAdvise_v2, (m, kBlock, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, place));
        told();
        ASK(cuMemPrefetchAsync, (d, kBlock, to, stream));
        ASK(cuMemAdvise, (d, kBlock, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, to));
    }
    ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
    told();
    for (const CUdevice wrong : {2, -3, 77}) {
        const Scope scope("to " + device(wrong));
        ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, wrong));
        ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_SET_READ_MOSTLY, wrong));
        ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, wrong));
        ASK(cuMemAdvise_v2, (m, kBlock, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on(wrong)));
        ASK(cuMemAdvise_v2, (m, kBlock, CU_MEM_ADVISE_UNSET_READ_MOSTLY, on(wrong)));
        ASK(cuMemPrefetchAsync, (m, kBlock, wrong, stream));
        ASK(cuMemPrefetchAsync_v2, (m, kBlock, on(wrong), 0, stream));
    }
    ASK(cuMemPrefetchAsync, (m, kBlock, 1, nullptr));
    ASK(cuCtxSetCurrent, (p0));
    ASK(cuMemPrefetchAsync, (m, kBlock, 1, nullptr));
    ASK(cuStreamSynchronize, (nullptr));
    told();
    CUdeviceptr many[] = {m, m + kBlock};
    size_t sizes[] = {kBlock, kBlock}, indices[] = {0, 1};
    CUmemLocation places[] = {on(1), on(0)};
    ASK(cuMemPrefetchBatchAsync, (many, sizes, 2, places, indices, 2, 0, stream));
    ASK(cuMemDiscardAndPrefetchBatchAsync, (many, sizes, 2, places, indices, 2, 0, stream));
    ASK(cuStreamAttachMemAsync, (stream, m, 0, CU_MEM_ATTACH_GLOBAL));
    ASK(cuCtxSetCurrent, (nullptr));
    ASK(cuMemAdvise, (m, kBlock, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1));
    ASK(cuMemPrefetchAsync, (m, kBlock, 1, nullptr));
    told();
    ASK(cuMemFree_v2, (m));
}

void batches() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    CUdeviceptr x = 0, y = 0;
    CUstream stream = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    cuCtxSetCurrent(p0);
    ASK(cuMemAlloc_v2, (&x, kBlock), as_block("X", x, kBlock));
    cuCtxSetCurrent(p1);
    ASK(cuMemAlloc_v2, (&y, kBlock), as_block("Y", y, kBlock));
    ASK(cuStreamCreate, (&stream, CU_STREAM_NON_BLOCKING), as("stream", stream));
    CUdeviceptr to[] = {y}, from[] = {x};
    size_t sizes[] = {kBlock}, indices[] = {0}, failed = 0;
    CUmemcpyAttributes how{};
    how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    how.srcLocHint = on(0);
    how.dstLocHint = on(1);
    ASK(cuMemcpyBatchAsync, (to, from, sizes, 1, &how, indices, 1, &failed, stream));
    ASK(cuMemcpyBatchAsync_ptsz, (to, from, sizes, 1, &how, indices, 1, &failed, stream));
    ASK(cuMemcpyBatchAsync_v2, (to, from, sizes, 1, &how, indices, 1, stream));
    ASK(cuMemcpyBatchAsync_v2_ptsz, (to, from, sizes, 1, &how, indices, 1, stream));
    CUDA_MEMCPY3D_BATCH_OP box{};
    box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.src.op.ptr = {x, 64, 1, on(0)};
    box.dst.op.ptr = {y, 64, 1, on(1)};
    box.extent = {64, 1, 1};
    box.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    ASK(cuMemcpy3DBatchAsync, (1, &box, &failed, 0, stream));
    ASK(cuMemcpy3DBatchAsync_ptsz, (1, &box, &failed, 0, stream));
    ASK(cuMemcpy3DBatchAsync_v2, (1, &box, 0, stream));
    ASK(cuMemcpy3DBatchAsync_v2_ptsz, (1, &box, 0, stream));
    ASK(cuStreamSynchronize, (stream));
}

}  // namespace conformance
