// SPDX-License-Identifier: Apache-2.0
// Streams, events, modules and arrays: whose they are.
#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

constexpr const char* kModule =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 data[1024];\n"
    ".visible .entry work() { ret; }\n";

void whose(CUstream stream) {
    CUcontext context = nullptr;
    CUgreenCtx green = nullptr;
    CUdevice where = -1;
    unsigned flags = 0;
    int priority = 0;
    unsigned long long id = 0;
    ASK(cuStreamGetCtx, (stream, &context), named(context));
    ASK(cuStreamGetCtx_ptsz, (stream, &context), named(context));
    ASK(cuStreamGetCtx_v2, (stream, &context, &green), named(context), named(green));
    ASK(cuStreamGetCtx_v2_ptsz, (stream, &context, &green), named(context), named(green));
    ASK(cuStreamGetDevice, (stream, &where), device(where));
    ASK(cuStreamGetDevice_ptsz, (stream, &where), device(where));
    ASK(cuStreamGetFlags, (stream, &flags), number(flags));
    ASK(cuStreamGetPriority, (stream, &priority), number(priority));
    ASK(cuStreamGetId, (stream, &id), id ? "a number" : "0");
    ASK(cuStreamQuery, (stream));
    ASK(cuStreamSynchronize, (stream));
    ASK(cuStreamGetCtx, (stream, nullptr));
    ASK(cuStreamGetDevice, (stream, nullptr));
}

}  // namespace

void streams() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, a = nullptr;
    CUstream s0 = nullptr, s1 = nullptr, sa = nullptr, gone = nullptr;
    ASK(cuStreamCreate, (&s0, 0));
    whose(nullptr);
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxCreate_v2, (&a, 0, 1), as("A", a));
    ASK(cuStreamCreate, (&sa, CU_STREAM_NON_BLOCKING), as("SA", sa));
    cuCtxSetCurrent(p0);
    ASK(cuStreamCreateWithPriority, (&s0, 0, -1), as("S0", s0));
    cuCtxSetCurrent(p1);
    ASK(cuStreamCreateWithPriority, (&s1, CU_STREAM_NON_BLOCKING, 0), as("S1", s1));
    ASK(cuStreamCreate, (&gone, 0), as("gone", gone));
    ASK(cuStreamDestroy, (gone));
    ASK(cuStreamCreate, (nullptr, 0));
    ASK(cuStreamCreate, (&gone, 0x80));
    CUevent events[3] = {};
    for (const CUcontext current : {p0, p1, a, CUcontext{nullptr}}) {
        const Scope scope("current " + named(current));
        cuCtxSetCurrent(current);
        for (const CUstream stream : {s0, s1, sa, CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
            const Scope of(stream == CU_STREAM_LEGACY       ? "legacy"
                           : stream == CU_STREAM_PER_THREAD ? "per thread"
                                                            : named(stream));
            whose(stream);
            CUevent event = nullptr;
            ASK(cuEventCreate, (&event, 0), as("event", event));
            ASK(cuEventRecord, (event, stream));
            ASK(cuStreamWaitEvent, (stream, event, 0));
            ASK(cuEventQuery, (event));
            ASK(cuEventSynchronize, (event));
            ASK(cuEventDestroy_v2, (event));
        }
        whose(reinterpret_cast<CUstream>(0x5550));
    }
    int i = 0;
    for (const CUcontext context : {p0, p1, a}) {
        const Scope scope("event of " + named(context));
        cuCtxSetCurrent(context);
        ASK(cuEventCreate, (&events[i], 0), as("event of " + named(context), events[i]));
        ASK(cuEventRecord, (events[i], s1));
        ASK(cuEventRecord, (events[i], s0));
        ASK(cuEventRecord, (events[i], nullptr));
        ASK(cuCtxRecordEvent, (context, events[i]));
        ASK(cuCtxRecordEvent, (p1, events[i]));
        ASK(cuCtxWaitEvent, (p0, events[i]));
        ASK(cuCtxWaitEvent, (p1, events[i]));
        ASK(cuStreamWaitEvent, (s0, events[i], 0));
        ASK(cuCtxRecordEvent, (nullptr, events[i]));
        ASK(cuCtxWaitEvent, (context, nullptr));
        i++;
    }
    float elapsed = 0;
    ASK(cuEventRecord, (events[2], sa));
    ASK(cuEventElapsedTime, (&elapsed, events[1], events[1]), "measured");
    ASK(cuEventElapsedTime, (&elapsed, events[0], events[1]), "measured");
    cuCtxSetCurrent(p0);
    ASK(cuStreamDestroy_v2, (s1));
    ASK(cuStreamDestroy_v2, (s1));
    ASK(cuCtxDestroy_v2, (a));
    whose(sa);
    ASK(cuStreamDestroy_v2, (sa));
    ASK(cuStreamDestroy_v2, (nullptr));
    ASK(cuEventQuery, (events[2]));
    ASK(cuEventDestroy_v2, (events[2]));
    ASK(cuEventDestroy_v2, (events[1]));
    ASK(cuDevicePrimaryCtxRelease_v2, (0));
    cuCtxSetCurrent(p1);
    whose(s0);
    whose(nullptr);
}

void modules() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, a = nullptr;
    CUmodule m0 = nullptr, m1 = nullptr, ma = nullptr;
    CUfunction function = nullptr, f1 = nullptr;
    CUdeviceptr g0 = 0, g1 = 0;
    size_t size = 0;
    ASK(cuModuleLoadData, (&m0, kModule));
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxCreate_v2, (&a, 0, 1), as("A", a));
    ASK(cuModuleLoadDataEx, (&ma, kModule, 0, nullptr, nullptr), as("MA", ma));
    cuCtxSetCurrent(p0);
    ASK(cuModuleLoadData, (&m0, kModule), as("M0", m0));
    ASK(cuModuleGetGlobal_v2, (&g0, &size, m0, "data"), as_block("data of M0", g0, 1024));
    cuCtxSetCurrent(p1);
    ASK(cuModuleLoadData, (&m1, kModule), as("M1", m1));
    ASK(cuModuleLoadFatBinary, (&ma, nullptr));
    ASK(cuModuleLoad, (&ma, "/there/is/none"));
    ASK(cuModuleLoadData, (nullptr, kModule));
    ASK(cuModuleGetGlobal_v2, (&g1, &size, m1, "data"), as_block("data of M1", g1, 1024));
    ASK(cuModuleGetFunction, (&f1, m1, "work"), as("work of M1", f1));
    ASK(cuModuleGetFunction, (&f1, m1, "nothing"));
    for (const CUdeviceptr global : {g0, g1}) {
        const Scope scope(block(global));
        CUdevice where = -1;
        CUcontext context = nullptr;
        ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, global), device(where));
        ASK(cuPointerGetAttribute, (&context, CU_POINTER_ATTRIBUTE_CONTEXT, global), named(context));
        ASK(cuMemsetD8_v2, (global, 1, 1024));
    }
    for (const CUcontext current : {p0, p1, a, CUcontext{nullptr}}) {
        const Scope scope("current " + named(current));
        cuCtxSetCurrent(current);
        ASK(cuLaunchKernel, (f1, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
        ASK(cuModuleGetFunction, (&function, m0, "work"), "found");
        CUmodule found = nullptr;
        ASK(cuFuncGetModule, (&found, f1), named(found));
        int value = 0;
        ASK(cuFuncGetAttribute, (&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f1), number(value));
    }
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUmodule of_library = nullptr;
    CUdeviceptr first = 0, second = 0;
    ASK(cuLibraryLoadData, (&library, kModule, nullptr, nullptr, 0, nullptr, nullptr, 0), as("library", library));
    ASK(cuLibraryGetKernel, (&kernel, library, "work"), as("kernel", kernel));
    for (const CUdevice ordinal : {0, 1, 2, -1}) {
        const Scope scope(device(ordinal));
        int value = 0;
        ASK(cuKernelGetAttribute, (&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, ordinal), number(value));
        ASK(cuKernelSetAttribute,
            (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024 * (ordinal + 1), kernel, ordinal));
        ASK(cuKernelGetAttribute, (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, ordinal),
            number(value));
        ASK(cuKernelSetCacheConfig, (kernel, CU_FUNC_CACHE_PREFER_L1, ordinal));
    }
    int value = 0;
    ASK(cuKernelGetAttribute, (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0), number(value));
    cuCtxSetCurrent(p0);
    ASK(cuLibraryGetModule, (&of_library, library), as("module of the library on 0", of_library));
    ASK(cuLibraryGetGlobal, (&first, &size, library, "data"), as_block("library's data on 0", first, 1024));
    ASK(cuKernelGetFunction, (&function, kernel), as("work of the library on 0", function));
    cuCtxSetCurrent(p1);
    ASK(cuLibraryGetModule, (&of_library, library), named(of_library));
    ASK(cuLibraryGetGlobal, (&second, &size, library, "data"), block(second));
    ASK(cuKernelGetFunction, (&function, kernel), named(function));
    CUdevice where = -1;
    ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, second), device(where));
    ASK(cuLibraryUnload, (library));
    ASK(cuCtxDestroy_v2, (a));
    ASK(cuModuleUnload, (ma));
    ASK(cuModuleUnload, (m0));
    ASK(cuModuleUnload, (m0));
    ASK(cuModuleUnload, (m1));
}

void arrays() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, a = nullptr;
    CUDA_ARRAY_DESCRIPTOR flat{};
    flat.Width = 256;
    flat.Height = 16;
    flat.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    flat.NumChannels = 4;
    CUDA_ARRAY_DESCRIPTOR_v1 old_flat{};
    old_flat.Width = 256;
    old_flat.Height = 16;
    old_flat.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    old_flat.NumChannels = 4;
    CUDA_ARRAY3D_DESCRIPTOR deep{};
    deep.Width = deep.Height = deep.Depth = 16;
    deep.Format = CU_AD_FORMAT_FLOAT;
    deep.NumChannels = 1;
    CUDA_ARRAY3D_DESCRIPTOR_v1 old_deep{};
    old_deep.Width = old_deep.Height = old_deep.Depth = 16;
    old_deep.Format = CU_AD_FORMAT_FLOAT;
    old_deep.NumChannels = 1;
    CUarray array = nullptr, kept = nullptr, of_a = nullptr;
    CUmipmappedArray mipmap = nullptr;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
    ASK(cuArrayCreate_v2, (&array, &flat));
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxCreate_v2, (&a, 0, 1), as("A", a));
    ASK(cuArrayCreate_v2, (&of_a, &flat), as("of A", of_a));
    for (const CUcontext current : {p0, p1}) {
        const Scope scope("current " + named(current));
        cuCtxSetCurrent(current);
        ASK(cuArrayCreate, (&array, &old_flat), as("array", array));
        ASK(cuArrayDestroy, (array));
        ASK(cuArrayDestroy, (array));
        ASK(cuArray3DCreate, (&array, &old_deep), as("array", array));
        ASK(cuArrayDestroy, (array));
        ASK(cuArray3DCreate_v2, (&array, &deep), as("array", array));
        for (const CUdevice ordinal : {0, 1, 2, -1}) {
            const Scope on(device(ordinal));
            ASK(cuArrayGetMemoryRequirements, (&needs, array, ordinal), needs.size ? "some" : "none");
        }
        ASK(cuArrayDestroy, (array));
        ASK(cuArrayCreate_v2, (&kept, &flat), as("kept", kept));
        ASK(cuArrayCreate_v2, (nullptr, &flat));
        ASK(cuMipmappedArrayCreate, (&mipmap, &deep, 3), as("mipmap", mipmap));
        ASK(cuMipmappedArrayGetLevel, (&array, mipmap, 1), "a level");
        ASK(cuMipmappedArrayGetMemoryRequirements, (&needs, mipmap, 1), needs.size ? "some" : "none");
        ASK(cuMipmappedArrayDestroy, (mipmap));
        ASK(cuMipmappedArrayDestroy, (mipmap));
    }
    for (const CUdevice of : {0, 1}) {
        // Tiles, which a mask of GPUs says whom they are for.
        const Scope scope("tiles on " + device(of));
        cuCtxSetCurrent(of == 0 ? p0 : p1);
        CUDA_ARRAY3D_DESCRIPTOR sparse{};
        sparse.Width = sparse.Height = 128;
        sparse.Format = CU_AD_FORMAT_FLOAT;
        sparse.NumChannels = 1;
        sparse.Flags = CUDA_ARRAY3D_SPARSE;
        CUmemAllocationProp wish{};
        wish.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        wish.location = on(of);
        wish.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
        CUmemGenericAllocationHandle piece = 0;
        CUarrayMapInfo tiles{};
        ASK(cuArray3DCreate_v2, (&array, &sparse), as("sparse", array));
        ASK(cuMemCreate, (&piece, kBlock, &wish, 0), "made");
        tiles.resourceType = CU_RESOURCE_TYPE_ARRAY;
        tiles.resource.array = array;
        tiles.subresource.sparseLevel.extentWidth = tiles.subresource.sparseLevel.extentHeight = 128;
        tiles.subresource.sparseLevel.extentDepth = 1;
        tiles.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
        tiles.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
        tiles.memHandle.memHandle = piece;
        for (const unsigned mask : {0u, 4u, 1u << 31, 1u << of}) {
            const Scope masked("mask " + number(mask));
            tiles.deviceBitMask = mask;
            ASK(cuMemMapArrayAsync, (&tiles, 1, nullptr));
            ASK(cuMemMapArrayAsync_ptsz, (&tiles, 1, nullptr));
        }
        ASK(cuMemMapArrayAsync, (nullptr, 1, nullptr));
        ASK(cuMemMapArrayAsync, (&tiles, 0, nullptr));
        ASK(cuArrayDestroy, (array));
        ASK(cuMemRelease, (piece));
    }
    cuCtxSetCurrent(p0);
    char bytes[64] = "";
    ASK(cuMemcpyHtoA_v2, (kept, 0, bytes, sizeof bytes));
    ASK(cuMemcpyAtoA_v2, (kept, 64, of_a, 0, 64));
    ASK(cuArrayDestroy, (kept));
    ASK(cuCtxDestroy_v2, (a));
    CUDA_ARRAY_DESCRIPTOR found{};
    ASK(cuArrayGetDescriptor_v2, (&found, of_a));
    ASK(cuArrayDestroy, (of_a));
}

}  // namespace conformance
