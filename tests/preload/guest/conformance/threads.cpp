// SPDX-License-Identifier: Apache-2.0
// Threads, each with its own current context, and processes that share memory.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

void current() {
    CUcontext now = nullptr;
    CUdevice where = -1;
    ASK(cuCtxGetCurrent, (&now), named(now));
    ASK(cuCtxGetDevice, (&where), device(where));
}

// One at a time, so that lines come in one order.
template <typename Work>
void in_thread(const char* name, Work work) {
    std::thread([&] {
        const Scope scope(name);
        work();
    }).join();
}

}  // namespace

void threads() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, a = nullptr, b = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxCreate_v2, (&a, 0, 1), as("A", a));
    CUdeviceptr x = 0, y = 0;
    in_thread("first", [&] {
        current();
        ASK(cuMemAlloc_v2, (&x, kBlock));
        ASK(cuCtxSetCurrent, (p0));
        current();
        ASK(cuMemAlloc_v2, (&x, kBlock), as_block("X", x, kBlock));
        ASK(cuCtxCreate_v2, (&b, 0, 0), as("B", b));
        current();
    });
    current();
    in_thread("second", [&] {
        ASK(cuCtxPushCurrent_v2, (b));
        ASK(cuCtxPushCurrent_v2, (p1));
        current();
        ASK(cuMemAlloc_v2, (&y, kBlock), as_block("Y", y, kBlock));
        CUdevice where = -1;
        for (const CUdeviceptr block : {x, y}) {
            const Scope scope(conformance::block(block));
            ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block), device(where));
        }
    });
    // Current here and ended elsewhere.
    ASK(cuCtxSetCurrent, (a));
    in_thread("third", [&] {
        ASK(cuCtxSetCurrent, (a));
        ASK(cuCtxDestroy_v2, (a));
        current();
    });
    {
        const Scope scope("A ended in another thread");
        CUcontext now = nullptr, popped = nullptr;
        CUdevice where = -1;
        CUdeviceptr z = 0;
        CUstream stream = nullptr;
        ASK(cuCtxGetCurrent, (&now), now == a ? "A still" : named(now));
        ASK(cuCtxGetDevice, (&where), device(where));
        ASK(cuMemAlloc_v2, (&z, kBlock));
        ASK(cuStreamCreate, (&stream, 0));
        ASK(cuCtxSynchronize, ());
        ASK(cuCtxSetCurrent, (a));
        ASK(cuCtxPushCurrent_v2, (p0));
        current();
        ASK(cuCtxPopCurrent_v2, (&popped), named(popped));
        ASK(cuCtxPopCurrent_v2, (&popped), "popped");
        ASK(cuCtxSetCurrent, (p1));
        current();
    }
    in_thread("fourth", [&] {
        // Freed where no context is, and where another's is.
        ASK(cuMemFree_v2, (x));
        ASK(cuCtxSetCurrent, (b));
        ASK(cuMemFree_v2, (y));
        ASK(cuMemFree_v2, (x));
        ASK(cuDevicePrimaryCtxReset_v2, (1));
        current();
    });
    current();
    ASK(cuCtxSynchronize, ());
    ASK(cuCtxDestroy_v2, (b));
}

// Memory of one process in another.
void sharing() {
    int to_child[2], to_parent[2];
    struct Shared {
        CUipcMemHandle memory[2];
        CUipcEventHandle event;
    } shared{};
    char done = 0;
    if (pipe(to_child) != 0 || pipe(to_parent) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        if (read(to_child[0], &shared, sizeof shared) != sizeof shared)
            _exit(1);
        const Scope scope("child");
        start();
        CUcontext p0 = nullptr, p1 = nullptr;
        cuDevicePrimaryCtxRetain(&p0, 0);
        cuDevicePrimaryCtxRetain(&p1, 1);
        as("P0", p0);
        as("P1", p1);
        for (const int of : {0, 1})
            for (const CUcontext context : {p0, p1}) {
                const Scope here("memory of " + device(of) + ": current " + named(context));
                CUdeviceptr memory = 0;
                CUdevice where = -1;
                CUcontext whose = nullptr;
                unsigned value = 0;
                cuCtxSetCurrent(context);
                ASK(cuIpcOpenMemHandle_v2, (nullptr, shared.memory[of], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
                ASK(cuIpcOpenMemHandle_v2, (&memory, shared.memory[of], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                    as_block("shared", memory, kBlock));
                ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory), device(where));
                ASK(cuPointerGetAttribute, (&whose, CU_POINTER_ATTRIBUTE_CONTEXT, memory), named(whose));
                ASK(cuMemcpyDtoH_v2, (&value, memory, sizeof value), number(value));
                ASK(cuIpcCloseMemHandle, (memory));
                ASK(cuIpcCloseMemHandle, (memory));
            }
        CUevent event = nullptr;
        ASK(cuIpcOpenEventHandle, (&event, shared.event), "opened");
        ASK(cuEventQuery, (event));
        cuCtxSetCurrent(p0);
        ASK(cuEventQuery, (event));
        if (write(to_parent[1], &done, 1) != 1)
            _exit(1);
        _exit(0);
    }
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    CUdeviceptr x = 0, y = 0, opened = 0;
    CUevent event = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    cuCtxSetCurrent(p0);
    ASK(cuMemAlloc_v2, (&x, kBlock), as_block("X", x, kBlock));
    ASK(cuMemsetD32_v2, (x, 10, kBlock / 4));
    cuCtxSetCurrent(p1);
    ASK(cuMemAlloc_v2, (&y, kBlock), as_block("Y", y, kBlock));
    ASK(cuMemsetD32_v2, (y, 11, kBlock / 4));
    ASK(cuIpcGetMemHandle, (&shared.memory[0], x));
    ASK(cuIpcGetMemHandle, (&shared.memory[1], y));
    ASK(cuIpcGetMemHandle, (&shared.memory[1], 0x40));
    ASK(cuIpcGetMemHandle, (&shared.memory[1], y));
    ASK(cuIpcOpenMemHandle_v2, (&opened, shared.memory[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ASK(cuIpcOpenMemHandle_v2, (&opened, shared.memory[1], 0));
    ASK(cuEventCreate, (&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), as("event", event));
    ASK(cuEventRecord, (event, nullptr));
    ASK(cuIpcGetEventHandle, (&shared.event, event));
    if (write(to_child[1], &shared, sizeof shared) == sizeof shared && read(to_parent[0], &done, 1) == 1)
        say("the child", " is done", CUDA_SUCCESS, [] { return Words{}; });
    int status = 0;
    waitpid(child, &status, 0);
    ASK(cuMemFree_v2, (y));
    ASK(cuMemFree_v2, (x));
}

}  // namespace conformance
