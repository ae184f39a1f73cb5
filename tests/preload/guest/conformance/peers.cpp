// SPDX-License-Identifier: Apache-2.0
// Access of one GPU to another's memory, and copies between them.
#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

void between(CUdevice from, CUdevice to) {
    const Scope scope(device(from) + " to " + device(to));
    int value = 0;
    unsigned capability = 0;
    const CUatomicOperation operation = CU_ATOMIC_OPERATION_INTEGER_ADD;
    ASK(cuDeviceCanAccessPeer, (&value, from, to), number(value));
    ASK(cuDeviceGetP2PAttribute, (&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to), number(value));
    ASK(cuDeviceGetP2PAttribute, (&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, from, to), number(value));
    ASK(cuDeviceGetP2PAttribute, (&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to), number(value));
    ASK(cuDeviceGetP2PAttribute, (&value, CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, from, to),
        number(value));
    ASK(cuDeviceGetP2PAttribute, (&value, CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED, from, to),
        number(value));
    ASK(cuDeviceGetP2PAttribute, (&value, CUdevice_P2PAttribute{}, from, to), number(value));
    ASK(cuDeviceGetP2PAttribute, (&value, static_cast<CUdevice_P2PAttribute>(99), from, to), number(value));
    ASK(cuDeviceGetP2PAtomicCapabilities, (&capability, &operation, 1, from, to), number(capability));
    ASK(cuDeviceCanAccessPeer, (nullptr, from, to));
    ASK(cuDeviceGetP2PAttribute, (nullptr, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to));
}

unsigned first_of(CUdeviceptr block) {
    unsigned found = 0;
    cuMemcpyDtoH_v2(&found, block, sizeof found);
    return found;
}

CUDA_MEMCPY3D_PEER box(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context) {
    CUDA_MEMCPY3D_PEER all{};
    all.srcMemoryType = all.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    all.srcDevice = from;
    all.srcContext = from_context;
    all.srcPitch = all.dstPitch = 64;
    all.srcHeight = all.dstHeight = 4;
    all.dstDevice = to;
    all.dstContext = to_context;
    all.WidthInBytes = 64;
    all.Height = 4;
    all.Depth = 2;
    return all;
}

}  // namespace

void peers() {
    start();
    for (const CUdevice from : {0, 1, 2, -1})
        for (const CUdevice to : {0, 1, 2, -1})
            between(from, to);
    CUcontext a = nullptr, b = nullptr, a2 = nullptr, b2 = nullptr, primary = nullptr;
    {
        const Scope scope("no context");
        ASK(cuCtxEnablePeerAccess, (nullptr, 0));
        ASK(cuCtxDisablePeerAccess, (nullptr));
    }
    ASK(cuCtxCreate_v2, (&a, 0, 0), as("A", a));
    ASK(cuCtxCreate_v2, (&a2, 0, 0), as("A2", a2));
    ASK(cuCtxCreate_v2, (&b, 0, 1), as("B", b));
    ASK(cuCtxCreate_v2, (&b2, 0, 1), as("B2", b2));
    ASK(cuDevicePrimaryCtxRetain, (&primary, 1), as("P1", primary));
    ASK(cuCtxSetCurrent, (a));
    ASK(cuCtxDisablePeerAccess, (b));
    ASK(cuCtxEnablePeerAccess, (a, 0));
    ASK(cuCtxEnablePeerAccess, (a2, 0));
    ASK(cuCtxEnablePeerAccess, (nullptr, 0));
    ASK(cuCtxEnablePeerAccess, (b, 1));
    ASK(cuCtxEnablePeerAccess, (b, 0));
    ASK(cuCtxEnablePeerAccess, (b, 0));
    ASK(cuCtxEnablePeerAccess, (b, 1));
    ASK(cuCtxEnablePeerAccess, (b2, 0));
    ASK(cuCtxEnablePeerAccess, (primary, 0));
    ASK(cuCtxEnablePeerAccess, (reinterpret_cast<CUcontext>(0x1230), 0));
    ASK(cuCtxDisablePeerAccess, (a));
    ASK(cuCtxDisablePeerAccess, (a2));
    ASK(cuCtxDisablePeerAccess, (nullptr));
    ASK(cuCtxDisablePeerAccess, (reinterpret_cast<CUcontext>(0x1230)));
    ASK(cuCtxSetCurrent, (b));
    // It is one way.
    ASK(cuCtxDisablePeerAccess, (a));
    ASK(cuCtxEnablePeerAccess, (a, 0));
    ASK(cuCtxDisablePeerAccess, (a));
    ASK(cuCtxDisablePeerAccess, (a));
    ASK(cuCtxSetCurrent, (a));
    ASK(cuCtxDisablePeerAccess, (b));
    ASK(cuCtxDisablePeerAccess, (b));
    ASK(cuCtxEnablePeerAccess, (b, 0));
    ASK(cuCtxDestroy_v2, (b));
    ASK(cuCtxEnablePeerAccess, (b, 0));
    ASK(cuCtxDisablePeerAccess, (b));
    ASK(cuDevicePrimaryCtxReset_v2, (1));
    ASK(cuCtxDisablePeerAccess, (primary));
    ASK(cuCtxEnablePeerAccess, (primary, 0));
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
    ASK(cuCtxDestroy_v2, (b2));
    ASK(cuCtxDestroy_v2, (a2));
    ASK(cuCtxDestroy_v2, (a));
}

void peer_copies() {
    start();
    CUcontext a = nullptr, b = nullptr, gone = nullptr;
    CUdeviceptr x = 0, y = 0;
    CUstream of_a = nullptr, of_b = nullptr;
    ASK(cuCtxCreate_v2, (&gone, 0, 1), as("gone", gone));
    ASK(cuCtxDestroy_v2, (gone));
    {
        const Scope scope("no context");
        ASK(cuMemcpyPeer, (1, a, 2, b, 16));
        const CUDA_MEMCPY3D_PEER all = box(1, nullptr, 2, nullptr);
        ASK(cuMemcpy3DPeer, (&all));
    }
    ASK(cuCtxCreate_v2, (&a, 0, 0), as("A", a));
    ASK(cuMemAlloc_v2, (&x, kBlock), as_block("X", x, kBlock));
    ASK(cuStreamCreate, (&of_a, 0), as("stream of A", of_a));
    ASK(cuCtxCreate_v2, (&b, 0, 1), as("B", b));
    ASK(cuMemAlloc_v2, (&y, kBlock), as_block("Y", y, kBlock));
    ASK(cuStreamCreate, (&of_b, 0), as("stream of B", of_b));
    unsigned value = 100;
    for (const CUcontext current : {a, b, CUcontext{nullptr}}) {
        const Scope scope("current " + named(current));
        cuCtxSetCurrent(current);
        const auto set = [&] {
            CUcontext before = nullptr;
            cuCtxGetCurrent(&before);
            cuCtxSetCurrent(a);
            cuMemsetD32_v2(x, ++value, kBlock / 4);
            cuCtxSetCurrent(before);
        };
        const auto got = [&] {
            CUcontext before = nullptr;
            cuCtxGetCurrent(&before);
            cuCtxSetCurrent(b);
            cuCtxSynchronize();
            cuCtxSetCurrent(a);
            cuCtxSynchronize();
            const bool same = first_of(y) == value;
            cuCtxSetCurrent(before);
            return same ? "copied" : "not copied";
        };
        set();
        ASK(cuMemcpyPeer, (y, b, x, a, kBlock), got());
        set();
        ASK(cuMemcpyPeer_ptds, (y, b, x, a, kBlock), got());
        set();
        ASK(cuMemcpyPeerAsync, (y, b, x, a, kBlock, of_a), got());
        set();
        ASK(cuMemcpyPeerAsync, (y, b, x, a, kBlock, of_b), got());
        set();
        ASK(cuMemcpyPeerAsync_ptsz, (y, b, x, a, kBlock, nullptr), got());
        set();
        ASK(cuMemcpyDtoD_v2, (y, x, kBlock), got());
        set();
        ASK(cuMemcpyDtoDAsync_v2, (y, x, kBlock, of_b), got());
        set();
        ASK(cuMemcpy, (y, x, kBlock), got());
        const CUDA_MEMCPY3D_PEER all = box(y, b, x, a);
        set();
        ASK(cuMemcpy3DPeer, (&all), got());
        set();
        ASK(cuMemcpy3DPeer_ptds, (&all), got());
        set();
        ASK(cuMemcpy3DPeerAsync, (&all, of_a), got());
        set();
        ASK(cuMemcpy3DPeerAsync_ptsz, (&all, of_b), got());
        // Not what the contexts say.
        ASK(cuMemcpyPeer, (y, a, x, b, 64));
        ASK(cuMemcpyPeer, (y, nullptr, x, a, 64));
        ASK(cuMemcpyPeer, (y, b, x, nullptr, 64));
        ASK(cuMemcpyPeer, (y, nullptr, x, nullptr, 64));
        ASK(cuMemcpyPeer, (y, gone, x, a, 64));
        ASK(cuMemcpyPeer, (y, b, x, gone, 64));
        ASK(cuMemcpyPeer, (y, b, x, a, 0));
        ASK(cuMemcpyPeer, (y, b, x + kBlock - 16, a, 64));
        ASK(cuMemcpyPeer, (y + kBlock, b, x, a, 64));
        ASK(cuMemcpyPeer, (0, b, x, a, 64));
        ASK(cuMemcpyPeerAsync, (y, b, x, a, 64, reinterpret_cast<CUstream>(0x4560)));
        ASK(cuMemcpy3DPeer, (nullptr));
        CUDA_MEMCPY3D_PEER wrong = box(y, gone, x, a);
        ASK(cuMemcpy3DPeer, (&wrong));
        wrong = box(y, nullptr, x, nullptr);
        ASK(cuMemcpy3DPeer, (&wrong));
        wrong = box(y, a, x, b);
        ASK(cuMemcpy3DPeer, (&wrong));
    }
    cuCtxSetCurrent(a);
    ASK(cuCtxDestroy_v2, (b));
    ASK(cuMemcpyPeer, (y, b, x, a, 64));
    ASK(cuMemcpyDtoD_v2, (y, x, 64));
    ASK(cuCtxDestroy_v2, (a));
}

}  // namespace conformance
