// SPDX-License-Identifier: Apache-2.0
// Primary contexts, and what ends with contexts.
#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

void states() {
    for (const CUdevice ordinal : {0, 1}) {
        const Scope scope(device(ordinal));
        unsigned flags = 0;
        int active = 0;
        ASK(cuDevicePrimaryCtxGetState, (ordinal, &flags, &active), "flags", number(flags), "active", number(active));
    }
}

void current() {
    CUcontext now = nullptr;
    CUdevice where = -1;
    ASK(cuCtxGetCurrent, (&now), named(now));
    ASK(cuCtxGetDevice, (&where), device(where));
}

constexpr const char* kModule =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 data[1024];\n"
    ".visible .entry work() { ret; }\n";

// One of everything that ends with a context.
struct Things {
    CUdeviceptr memory = 0, managed = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    CUarray array = nullptr;
    void* host = nullptr;

    explicit Things(const std::string& name) {
        CUDA_ARRAY_DESCRIPTOR form{};
        form.Width = 1024;
        form.Height = 64;
        form.Format = CU_AD_FORMAT_FLOAT;
        form.NumChannels = 1;
        ASK(cuMemAlloc_v2, (&memory, kBlock), as_block(name + " memory", memory, kBlock));
        ASK(cuMemAllocManaged, (&managed, kBlock, CU_MEM_ATTACH_GLOBAL), as_block(name + " managed", managed, kBlock));
        ASK(cuMemHostAlloc, (&host, 4096, CU_MEMHOSTALLOC_PORTABLE), "made");
        ASK(cuStreamCreate, (&stream, 0), as(name + " stream", stream));
        ASK(cuEventCreate, (&event, 0), as(name + " event", event));
        ASK(cuEventRecord, (event, stream));
        ASK(cuModuleLoadData, (&module, kModule), as(name + " module", module));
        ASK(cuArrayCreate_v2, (&array, &form), as(name + " array", array));
    }
    // Reports which of them are still there, asking with whatever context is current.
    void alive() const {
        CUdeviceptr found = 0;
        size_t bytes = 0;
        CUfunction function = nullptr;
        CUDA_ARRAY_DESCRIPTOR form{};
        unsigned value = 0;
        ASK(cuMemGetAddressRange_v2, (&found, &bytes, memory), block(found), number(static_cast<long long>(bytes)));
        ASK(cuMemcpyDtoH_v2, (&value, memory, sizeof value));
        ASK(cuMemGetAddressRange_v2, (&found, &bytes, managed), block(found));
        ASK(cuMemHostGetFlags, (&value, host), number(value));
        ASK(cuStreamQuery, (stream));
        ASK(cuEventQuery, (event));
        ASK(cuModuleGetFunction, (&function, module, "work"), "found");
        ASK(cuArrayGetDescriptor_v2, (&form, array), number(static_cast<long long>(form.Width)));
    }
};

}  // namespace

void primaries() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, again = nullptr;
    unsigned flags = 0;
    int active = 0;
    states();
    for (const CUdevice ordinal : {2, -1}) {
        const Scope scope(device(ordinal));
        ASK(cuDevicePrimaryCtxRetain, (&p0, ordinal));
        ASK(cuDevicePrimaryCtxRelease_v2, (ordinal));
        ASK(cuDevicePrimaryCtxRelease, (ordinal));
        ASK(cuDevicePrimaryCtxReset_v2, (ordinal));
        ASK(cuDevicePrimaryCtxReset, (ordinal));
        ASK(cuDevicePrimaryCtxSetFlags_v2, (ordinal, 0));
        ASK(cuDevicePrimaryCtxSetFlags, (ordinal, 0));
        ASK(cuDevicePrimaryCtxGetState, (ordinal, &flags, &active));
    }
    ASK(cuDevicePrimaryCtxRetain, (nullptr, 1));
    ASK(cuDevicePrimaryCtxRetain, (nullptr, 5));
    ASK(cuDevicePrimaryCtxGetState, (1, nullptr, &active));
    ASK(cuDevicePrimaryCtxGetState, (1, &flags, nullptr));
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
    ASK(cuDevicePrimaryCtxReset_v2, (1));
    ASK(cuDevicePrimaryCtxSetFlags_v2, (1, CU_CTX_SCHED_BLOCKING_SYNC));
    ASK(cuDevicePrimaryCtxSetFlags_v2, (1, 0x8000));
    ASK(cuDevicePrimaryCtxSetFlags_v2, (1, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
    states();
    ASK(cuDevicePrimaryCtxSetFlags, (1, CU_CTX_SCHED_SPIN));
    states();
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    states();
    current();
    ASK(cuDevicePrimaryCtxRetain, (&again, 1), named(again));
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    states();
    ASK(cuCtxSetCurrent, (p1));
    current();
    ASK(cuCtxGetFlags, (&flags), number(flags));
    ASK(cuDevicePrimaryCtxSetFlags_v2, (1, CU_CTX_SCHED_YIELD));  // of an active one
    ASK(cuCtxGetFlags, (&flags), number(flags));
    ASK(cuCtxSetFlags, (CU_CTX_SCHED_BLOCKING_SYNC));
    states();
    ASK(cuCtxSetCurrent, (p0));
    ASK(cuCtxGetFlags, (&flags), number(flags));
    ASK(cuCtxDestroy_v2, (p1));
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
    states();
    ASK(cuDevicePrimaryCtxRelease, (1));
    states();
    ASK(cuDevicePrimaryCtxRelease, (1));
    ASK(cuCtxSetCurrent, (p1));
    ASK(cuCtxPushCurrent_v2, (p1));
    CUdevice where = -1;
    ASK(cuCtxGetDevice_v2, (&where, p1), device(where));
    ASK(cuCtxSynchronize_v2, (p1));
    current();
    // The handle stays the same.
    ASK(cuDevicePrimaryCtxRetain, (&again, 1), named(again));
    states();
    ASK(cuCtxSetCurrent, (again));
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
    {
        const Scope scope("current and ended");
        CUcontext now = nullptr;
        CUdeviceptr memory = 0;
        ASK(cuCtxGetCurrent, (&now), named(now));
        ASK(cuCtxGetDevice, (&where), device(where));
        ASK(cuCtxSynchronize, ());
        ASK(cuMemAlloc_v2, (&memory, kBlock));
        ASK(cuCtxPopCurrent_v2, (&now), named(now));
    }
    current();
    ASK(cuDevicePrimaryCtxRelease_v2, (0));
    states();
    ASK(cuDevicePrimaryCtxRetain, (&again, 0), named(again));
    ASK(cuDevicePrimaryCtxRelease_v2, (0));
    states();
}

void resets() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, a = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    {
        const Scope scope("nothing in it");
        ASK(cuDevicePrimaryCtxReset_v2, (1));
        states();
        ASK(cuCtxSetCurrent, (p1));
        ASK(cuCtxSynchronize, ());
        ASK(cuCtxSynchronize_v2, (p1));
        current();
        ASK(cuDevicePrimaryCtxRetain, (&p1, 1), named(p1));
        states();
        ASK(cuCtxSetCurrent, (p1));
        current();
        ASK(cuDevicePrimaryCtxRelease_v2, (1));
        states();
    }
    ASK(cuCtxSetCurrent, (p0));
    const Things of0("0's");
    ASK(cuCtxSetCurrent, (p1));
    const Things of1("1's");
    ASK(cuCtxCreate_v2, (&a, 0, 1), as("A", a));
    const Things of_a("A's");
    {
        const Scope scope("device 1 reset");
        ASK(cuDevicePrimaryCtxReset, (1));
        states();
        current();
        of_a.alive();
        ASK(cuCtxSetCurrent, (p0));
        of0.alive();
        of1.alive();
        CUdevice where = -1;
        ASK(cuCtxGetDevice_v2, (&where, p1), device(where));
        ASK(cuCtxSetCurrent, (p1));
        current();
    }
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), named(p1));
    ASK(cuCtxSetCurrent, (p1));
    current();
    const Things anew("1's new");
    anew.alive();
    {
        const Scope scope("device 0 reset");
        ASK(cuDevicePrimaryCtxReset_v2, (0));
        states();
        anew.alive();
        ASK(cuCtxSetCurrent, (a));
        of_a.alive();
        ASK(cuCtxSetCurrent, (p0));
    }
    ASK(cuCtxDestroy_v2, (a));
    states();
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
    ASK(cuDevicePrimaryCtxRelease_v2, (0));
    ASK(cuDevicePrimaryCtxRelease_v2, (0));
    states();
}

void endings() {
    start();
    CUcontext p1 = nullptr, a = nullptr, b = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxCreate_v2, (&a, 0, 0), as("A", a));
    const Things of_a("A's");
    ASK(cuCtxCreate_v2, (&b, 0, 1), as("B", b));
    const Things of_b("B's");
    ASK(cuCtxSetCurrent, (p1));
    const Things of_p("P1's");
    {
        const Scope scope("B destroyed");
        ASK(cuCtxDestroy_v2, (b));
        of_p.alive();
        of_b.alive();
        of_a.alive();
        ASK(cuMemFree_v2, (of_b.memory));
        ASK(cuStreamDestroy_v2, (of_b.stream));
        ASK(cuModuleUnload, (of_b.module));
        ASK(cuArrayDestroy, (of_b.array));
    }
    {
        const Scope scope("P1 released");
        ASK(cuCtxSetCurrent, (a));
        ASK(cuDevicePrimaryCtxRelease_v2, (1));
        of_p.alive();
        of_a.alive();
    }
    ASK(cuCtxDestroy_v2, (a));
}

}  // namespace conformance
