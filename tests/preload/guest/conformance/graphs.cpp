// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs that name a context or a place.
#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

constexpr const char* kModule = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry work() { ret; }\n";

}  // namespace

void graphs() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr, gone = nullptr;
    CUdeviceptr x = 0, y = 0;
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr, memset = nullptr, kernel = nullptr, batch = nullptr;
    CUgraphExec exec = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    ASK(cuGraphCreate, (&graph, 0), as("graph", graph));
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxCreate_v2, (&gone, 0, 1), as("gone", gone));
    ASK(cuCtxDestroy_v2, (gone));
    cuCtxSetCurrent(p0);
    ASK(cuMemAlloc_v2, (&x, kBlock), as_block("X", x, kBlock));
    cuCtxSetCurrent(p1);
    ASK(cuMemAlloc_v2, (&y, kBlock), as_block("Y", y, kBlock));
    ASK(cuModuleLoadData, (&module, kModule), as("module", module));
    ASK(cuModuleGetFunction, (&function, module, "work"), as("work", function));
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = x;
    copy.dstDevice = y;
    copy.WidthInBytes = 64;
    copy.Height = copy.Depth = 1;
    ASK(cuGraphAddMemcpyNode, (&node, graph, nullptr, 0, &copy, p1), "added");
    CUDA_MEMSET_NODE_PARAMS set{};
    set.dst = y;
    set.elementSize = 4;
    set.width = 16;
    set.height = 1;
    ASK(cuGraphAddMemsetNode, (&memset, graph, nullptr, 0, &set, p1), "added");
    CUDA_KERNEL_NODE_PARAMS_v2 work{};
    work.func = function;
    work.gridDimX = work.gridDimY = work.gridDimZ = work.blockDimX = work.blockDimY = work.blockDimZ = 1;
    ASK(cuGraphAddKernelNode_v2, (&kernel, graph, nullptr, 0, &work), "added");
    if (kernel) {
        ASK(cuGraphKernelNodeGetParams_v2, (kernel, &work), named(work.ctx));
        ASK(cuGraphKernelNodeSetParams_v2, (kernel, &work));
    }
    CUstreamBatchMemOpParams write{};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = y;
    CUDA_BATCH_MEM_OP_NODE_PARAMS operations{p1, 1, &write, 0};
    ASK(cuGraphAddBatchMemOpNode, (&batch, graph, nullptr, 0, &operations), "added");
    if (batch) {
        ASK(cuGraphBatchMemOpNodeGetParams, (batch, &operations), named(operations.ctx));
        ASK(cuGraphBatchMemOpNodeSetParams, (batch, &operations));
    }
    CUgraphConditionalHandle condition = 0;
    ASK(cuGraphConditionalHandleCreate, (&condition, graph, p1, 0, 0), "made");
    CUgraphNodeParams any{};
    any.type = CU_GRAPH_NODE_TYPE_MEMSET;
    any.memset.dst = y;
    any.memset.elementSize = 4;
    any.memset.width = 16;
    any.memset.height = 1;
    any.memset.ctx = p1;
    ASK(cuGraphAddNode, (&node, graph, nullptr, 0, &any), named(any.memset.ctx));
    ASK(cuGraphAddNode_v2, (&node, graph, nullptr, nullptr, 0, &any), named(any.memset.ctx));
    ASK(cuGraphInstantiateWithFlags, (&exec, graph, 0), as("exec", exec));
    if (exec) {
        if (node)
            ASK(cuGraphExecMemcpyNodeSetParams, (exec, node, &copy, p1));
        if (memset)
            ASK(cuGraphExecMemsetNodeSetParams, (exec, memset, &set, p1));
        if (kernel)
            ASK(cuGraphExecKernelNodeSetParams_v2, (exec, kernel, &work));
        if (batch)
            ASK(cuGraphExecBatchMemOpNodeSetParams, (exec, batch, &operations));
        ASK(cuGraphLaunch, (exec, nullptr));
        cuCtxSetCurrent(p0);
        ASK(cuGraphLaunch, (exec, nullptr));
        cuCtxSetCurrent(nullptr);
        ASK(cuGraphLaunch, (exec, nullptr));
        ASK(cuGraphExecDestroy, (exec));
    }
    ASK(cuGraphDestroy, (graph));
}

void graph_memory() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    cuCtxSetCurrent(p0);
    const auto held = [](CUdevice ordinal) {
        cuuint64_t bytes = 0;
        const Scope scope(device(ordinal));
        ASK(cuDeviceGetGraphMemAttribute, (ordinal, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes),
            number(static_cast<long long>(bytes)));
        ASK(cuDeviceGetGraphMemAttribute, (ordinal, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &bytes),
            number(static_cast<long long>(bytes)));
        ASK(cuDeviceGetGraphMemAttribute, (ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes),
            bytes ? "some" : "none");
    };
    const CUmemAccessDesc from[] = {{on(1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                    {on(0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    const CUmemAccessDesc wrong[] = {{on(2), CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    for (const CUdevice ordinal : {0, 1, 2, -1}) {
        const Scope scope("for " + device(ordinal));
        CUgraph graph = nullptr;
        CUgraphNode node = nullptr, free = nullptr;
        CUgraphExec exec = nullptr;
        ASK(cuGraphCreate, (&graph, 0), "made");
        CUDA_MEM_ALLOC_NODE_PARAMS wish{}, told{};
        wish.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        wish.poolProps.location = on(ordinal);
        wish.bytesize = kBlock;
        if (ASK(cuGraphAddMemAllocNode, (&node, graph, nullptr, 0, &wish), "added", place(wish.poolProps.location)))
            continue;
        ASK(cuGraphMemAllocNodeGetParams, (node, &told), place(told.poolProps.location),
            number(static_cast<long long>(told.bytesize)), told.dptr == wish.dptr ? "the same" : "another");
        ASK(cuGraphAddMemFreeNode, (&free, graph, &node, 1, wish.dptr), "added");
        ASK(cuGraphInstantiateWithFlags, (&exec, graph, 0), "made");
        held(0);
        held(1);
        ASK(cuGraphLaunch, (exec, nullptr));
        ASK(cuCtxSynchronize, ());
        held(0);
        held(1);
        ASK(cuDeviceGraphMemTrim, (0));
        held(0);
        held(1);
        ASK(cuDeviceGraphMemTrim, (1));
        held(0);
        held(1);
        ASK(cuGraphExecDestroy, (exec));
        ASK(cuGraphDestroy, (graph));
        ASK(cuGraphCreate, (&graph, 0), "made");
        wish.accessDescs = from;
        wish.accessDescCount = 2;
        ASK(cuGraphAddMemAllocNode, (&node, graph, nullptr, 0, &wish), wish.accessDescs == from ? "as given" : "else");
        ASK(cuGraphMemAllocNodeGetParams, (node, &told), number(static_cast<long long>(told.accessDescCount)));
        wish.accessDescCount = 1;
        ASK(cuGraphAddMemAllocNode, (&node, graph, nullptr, 0, &wish));
        wish.accessDescs = wrong;
        ASK(cuGraphAddMemAllocNode, (&node, graph, nullptr, 0, &wish));
        CUgraphNodeParams any{};
        any.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        any.alloc.poolProps = wish.poolProps;
        any.alloc.bytesize = kBlock;
        ASK(cuGraphAddNode_v2, (&node, graph, nullptr, nullptr, 0, &any), place(any.alloc.poolProps.location));
        ASK(cuGraphDestroy, (graph));
    }
    {
        // Captured where each is current.
        for (const CUcontext context : {p0, p1}) {
            const Scope scope("captured in " + named(context));
            cuCtxSetCurrent(context);
            CUstream stream = nullptr;
            CUgraph graph = nullptr;
            CUgraphExec exec = nullptr;
            CUdeviceptr memory = 0;
            ASK(cuStreamCreate, (&stream, CU_STREAM_NON_BLOCKING), "made");
            ASK(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
            ASK(cuMemAllocAsync, (&memory, kBlock, stream), "captured");
            ASK(cuMemFreeAsync, (memory, stream));
            ASK(cuStreamEndCapture, (stream, &graph), "made");
            size_t count = 2;
            CUgraphNode nodes[2] = {};
            ASK(cuGraphGetNodes, (graph, nodes, &count), number(static_cast<long long>(count)));
            CUDA_MEM_ALLOC_NODE_PARAMS told{};
            ASK(cuGraphMemAllocNodeGetParams, (nodes[0], &told), place(told.poolProps.location));
            ASK(cuGraphInstantiateWithFlags, (&exec, graph, 0), "made");
            ASK(cuGraphLaunch, (exec, stream));
            ASK(cuStreamSynchronize, (stream));
            held(0);
            held(1);
            ASK(cuGraphExecDestroy, (exec));
            ASK(cuGraphDestroy, (graph));
        }
    }
}

void green() {
    start();
    for (const CUdevice ordinal : {0, 1, 2, -1}) {
        const Scope scope(device(ordinal));
        CUdevResource all{};
        ASK(cuDeviceGetDevResource, (ordinal, &all, CU_DEV_RESOURCE_TYPE_SM), number(all.sm.smCount));
        ASK(cuDeviceGetDevResource, (ordinal, nullptr, CU_DEV_RESOURCE_TYPE_SM));
    }
    CUdevResource of0{}, of1{};
    CUdevResourceDesc d0 = nullptr, d1 = nullptr;
    CUgreenCtx g0 = nullptr, g1 = nullptr, wrong = nullptr;
    CUcontext c0 = nullptr, c1 = nullptr, now = nullptr, p1 = nullptr;
    ASK(cuDeviceGetDevResource, (0, &of0, CU_DEV_RESOURCE_TYPE_SM), number(of0.sm.smCount));
    ASK(cuDeviceGetDevResource, (1, &of1, CU_DEV_RESOURCE_TYPE_SM), number(of1.sm.smCount));
    ASK(cuDevResourceGenerateDesc, (&d0, &of0, 1), "made");
    ASK(cuDevResourceGenerateDesc, (&d1, &of1, 1), "made");
    for (const CUdevice ordinal : {2, -1}) {
        const Scope scope(device(ordinal));
        ASK(cuGreenCtxCreate, (&wrong, d1, ordinal, CU_GREEN_CTX_DEFAULT_STREAM));
    }
    ASK(cuGreenCtxCreate, (&wrong, d1, 1, 0));
    ASK(cuGreenCtxCreate, (nullptr, d1, 1, CU_GREEN_CTX_DEFAULT_STREAM));
    {
        const Scope scope("the other's resources");
        ASK(cuGreenCtxCreate, (&wrong, d0, 1, CU_GREEN_CTX_DEFAULT_STREAM), "made");
        if (wrong)
            cuGreenCtxDestroy(wrong);
    }
    ASK(cuGreenCtxCreate, (&g0, d0, 0, CU_GREEN_CTX_DEFAULT_STREAM), as("G0", g0));
    ASK(cuGreenCtxCreate, (&g1, d1, 1, CU_GREEN_CTX_DEFAULT_STREAM), as("G1", g1));
    const auto states = [] {
        for (const CUdevice ordinal : {0, 1}) {
            const Scope scope(device(ordinal));
            unsigned flags = 0;
            int active = 0;
            ASK(cuDevicePrimaryCtxGetState, (ordinal, &flags, &active), number(flags), number(active));
        }
    };
    states();
    ASK(cuCtxFromGreenCtx, (&c0, g0), as("context of G0", c0));
    ASK(cuCtxFromGreenCtx, (&c1, g1), as("context of G1", c1));
    ASK(cuCtxFromGreenCtx, (&now, g1), named(now));
    ASK(cuCtxFromGreenCtx, (nullptr, g1));
    ASK(cuCtxFromGreenCtx, (&now, nullptr));
    for (const CUcontext context : {c0, c1}) {
        const Scope scope("current " + named(context));
        CUdevice where = -1;
        CUdevResource some{};
        CUdeviceptr x = 0;
        CUstream stream = nullptr;
        CUgreenCtx found = nullptr;
        unsigned long long id = 0;
        unsigned version = 0;
        ASK(cuCtxSetCurrent, (context));
        ASK(cuCtxGetCurrent, (&now), named(now));
        ASK(cuCtxGetDevice, (&where), device(where));
        ASK(cuCtxGetDevice_v2, (&where, context), device(where));
        ASK(cuCtxGetId, (context, &id), id ? "a number" : "0");
        ASK(cuCtxGetApiVersion, (context, &version), number(version));
        ASK(cuCtxGetDevResource, (context, &some, CU_DEV_RESOURCE_TYPE_SM), number(some.sm.smCount));
        ASK(cuGreenCtxGetDevResource, (context == c0 ? g0 : g1, &some, CU_DEV_RESOURCE_TYPE_SM),
            number(some.sm.smCount));
        ASK(cuGreenCtxGetId, (context == c0 ? g0 : g1, &id), id ? "a number" : "0");
        ASK(cuMemAlloc_v2, (&x, kBlock), as_block("X", x, kBlock));
        ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x), device(where));
        ASK(cuPointerGetAttribute, (&now, CU_POINTER_ATTRIBUTE_CONTEXT, x),
            now == context ? "the green one's" : "another");
        ASK(cuGreenCtxStreamCreate, (&stream, context == c0 ? g0 : g1, CU_STREAM_NON_BLOCKING, 0),
            as("stream", stream));
        ASK(cuStreamGetCtx, (stream, &now), named(now));
        ASK(cuStreamGetCtx_v2, (stream, &now, &found), named(now), named(found));
        ASK(cuStreamGetDevice, (stream, &where), device(where));
        ASK(cuStreamGetGreenCtx, (stream, &found), named(found));
        ASK(cuMemFree_v2, (x));
        CUevent event = nullptr;
        ASK(cuEventCreate, (&event, 0), "made");
        ASK(cuGreenCtxRecordEvent, (context == c0 ? g0 : g1, event));
        ASK(cuGreenCtxWaitEvent, (context == c0 ? g0 : g1, event));
        ASK(cuStreamDestroy_v2, (stream));
        ASK(cuCtxPushCurrent_v2, (context));
        ASK(cuCtxPopCurrent_v2, (&now), named(now));
        ASK(cuCtxSynchronize, ());
    }
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    ASK(cuCtxGetDevResource, (p1, &of1, CU_DEV_RESOURCE_TYPE_SM), number(of1.sm.smCount));
    ASK(cuDevicePrimaryCtxRelease_v2, (1));
    states();
    ASK(cuCtxSetCurrent, (c1));
    ASK(cuGreenCtxDestroy, (g1));
    states();
    ASK(cuGreenCtxDestroy, (g1));
    ASK(cuCtxSetCurrent, (c1));
    ASK(cuCtxSetCurrent, (c0));
    CUdevice where = -1;
    ASK(cuCtxGetDevice, (&where), device(where));
    ASK(cuGreenCtxDestroy, (g0));
    states();
}

}  // namespace conformance
