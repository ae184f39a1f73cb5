// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/bounds/cases.h"

namespace bounds {
namespace {

constexpr CUmemorytype kDevice = CU_MEMORYTYPE_DEVICE, kUnified = CU_MEMORYTYPE_UNIFIED;
constexpr Does write = Does::write, to_device = Does::read_to_device;
constexpr unsigned kWord = 0x5a5a5a5a;
constexpr unsigned short kShort = 0x5a5a;

/// A batch of two copies, of which the first one is right.
struct Batch {
    CUdeviceptr to[2], from[2];
    size_t bytes[2], index = 0, failed = 77;
    CUmemcpyAttributes attributes{};
    Batch(CUdeviceptr to_second, CUdeviceptr from_second, size_t count)
        : to{ends.device, to_second}, from{ends.device, from_second}, bytes{count, count} {}
    /// A refusal that doesn't say which copy it is for is none of ours.
    CUresult told(CUresult result) const {
        return result == CUDA_ERROR_INVALID_VALUE && failed != 1 ? CUDA_ERROR_UNKNOWN : result;
    }
};

CUresult batch_v1(decltype(&cuMemcpyBatchAsync) call, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    Batch batch(to, from, bytes);
    return batch.told(
        call(batch.to, batch.from, batch.bytes, 2, &batch.attributes, &batch.index, 1, &batch.failed, nullptr));
}

CUresult batch_v2(decltype(&cuMemcpyBatchAsync_v2) call, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    Batch batch(to, from, bytes);
    return call(batch.to, batch.from, batch.bytes, 2, &batch.attributes, &batch.index, 1, nullptr);
}

CUresult box_batch_v1(decltype(&cuMemcpy3DBatchAsync) call, Way way, CUdeviceptr at, size_t bytes) {
    size_t failed = 77;
    const CUresult result = call(2, box_batch(way, at, bytes), &failed, 0, nullptr);
    return result == CUDA_ERROR_INVALID_VALUE && failed != 1 ? CUDA_ERROR_UNKNOWN : result;
}

/// A graph of one node, which `add` puts into it, made and run.
template <typename Add>
CUresult in_graph(Add add) {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec instance = nullptr;
    BOUNDS_MUST(cuGraphCreate(&graph, 0));
    const CUresult result = add(&node, graph);
    if (result == CUDA_SUCCESS) {
        BOUNDS_MUST(cuGraphInstantiateWithFlags(&instance, graph, 0));
        BOUNDS_MUST(cuGraphLaunch(instance, nullptr));
        BOUNDS_MUST(cuCtxSynchronize());
        BOUNDS_MUST(cuGraphExecDestroy(instance));
    }
    BOUNDS_MUST(cuGraphDestroy(graph));
    return result;
}
#define IN_GRAPH(...) in_graph([&](CUgraphNode* made, CUgraph graph) { return __VA_ARGS__; })

/// A copy of one byte, which is changed before it is done.
CUgraphNodeParams* one_byte() {
    static thread_local CUgraphNodeParams node;
    node = {};
    node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    CUDA_MEMCPY3D& copy = node.memcpy.copyParams;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = ends.host.data();
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = ends.device;
    copy.WidthInBytes = copy.Height = copy.Depth = 1;
    node.memcpy.copyCtx = ends.context;
    return &node;
}

/// A fill of one element, which is changed as well.
CUgraphNodeParams* one_word() {
    static thread_local CUgraphNodeParams node;
    node = {};
    node.type = CU_GRAPH_NODE_TYPE_MEMSET;
    node.memset = {ends.device, 0, 0, 2, 1, 1, ends.context};
    return &node;
}

/// A graph of one node, which is `first` until `change` makes something else of it, instantiated and run then.
template <typename Change>
CUresult in_changed_graph(CUgraphNodeParams* first, Change change) {
    return in_graph([&](CUgraphNode* made, CUgraph graph) {
        BOUNDS_MUST(cuGraphAddNode(made, graph, nullptr, 0, first));
        return change(*made);
    });
}
#define IN_CHANGED_GRAPH(first, ...) in_changed_graph(first, [&](CUgraphNode changed) { return __VA_ARGS__; })

/// An instance whose one node, which is `first`, does what `change` makes of it.
template <typename Change>
CUresult in_instance(CUgraphNodeParams* first, Change change) {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec instance = nullptr;
    BOUNDS_MUST(cuGraphCreate(&graph, 0));
    BOUNDS_MUST(cuGraphAddNode(&node, graph, nullptr, 0, first));
    BOUNDS_MUST(cuGraphInstantiateWithFlags(&instance, graph, 0));
    const CUresult result = change(instance, node);
    if (result == CUDA_SUCCESS) {
        BOUNDS_MUST(cuGraphLaunch(instance, nullptr));
        BOUNDS_MUST(cuCtxSynchronize());
    }
    BOUNDS_MUST(cuGraphExecDestroy(instance));
    BOUNDS_MUST(cuGraphDestroy(graph));
    return result;
}
#define IN_INSTANCE(first, ...) \
    in_instance(first, [&](CUgraphExec instance, CUgraphNode changed) { return __VA_ARGS__; })

#define ROW(symbol, variant, does, unit, ...)                                              \
    {                                                                                      \
#symbol, variant, does, unit, [](CUdeviceptr at, size_t n) { return __VA_ARGS__; } \
    }

// As arguments or as a structure, followed by what the Async forms have more.
#define FROM_HOST(symbol, ...) ROW(symbol, "to", write, 1, symbol(at, ends.host.data(), n __VA_OPT__(, ) __VA_ARGS__))
#define TO_HOST(symbol, ...) \
    ROW(symbol, "from", Does::read_to_host, 1, symbol(ends.host.data(), at, n __VA_OPT__(, ) __VA_ARGS__))
#define BOTH(symbol, ...)                                                               \
    ROW(symbol, "to", write, 1, symbol(at, ends.device, n __VA_OPT__(, ) __VA_ARGS__)), \
        ROW(symbol, "from", to_device, 1, symbol(ends.device, at, n __VA_OPT__(, ) __VA_ARGS__))
#define UNIFIED(symbol, ...)                          \
    BOTH(symbol, __VA_ARGS__),                        \
        ROW(symbol, "to-host", Does::read_to_host, 1, \
            symbol(reinterpret_cast<CUdeviceptr>(ends.host.data()), at, n __VA_OPT__(, ) __VA_ARGS__))
#define PEER(symbol, ...)                                                                                           \
    ROW(symbol, "to", write, 1, symbol(at, ends.context, ends.device, ends.context, n __VA_OPT__(, ) __VA_ARGS__)), \
        ROW(symbol, "from", to_device, 1,                                                                           \
            symbol(ends.device, ends.context, at, ends.context, n __VA_OPT__(, ) __VA_ARGS__))
#define ROWS(symbol, ...)                                                                                       \
    ROW(symbol, "to", write, 1, symbol(rows(Way::to, at, n, kDevice) __VA_OPT__(, ) __VA_ARGS__)),              \
        ROW(symbol, "from", to_device, 1, symbol(rows(Way::from, at, n, kDevice) __VA_OPT__(, ) __VA_ARGS__)),  \
        ROW(symbol, "to-unified", write, 1, symbol(rows(Way::to, at, n, kUnified) __VA_OPT__(, ) __VA_ARGS__)), \
        ROW(symbol, "from-unified", to_device, 1, symbol(rows(Way::from, at, n, kUnified) __VA_OPT__(, ) __VA_ARGS__))
#define BOXES(symbol, ...)                                                                                    \
    ROW(symbol, "to", write, 1, symbol(box(Way::to, at, n, kDevice, Shape::box) __VA_OPT__(, ) __VA_ARGS__)), \
        ROW(symbol, "from-unified", to_device, 1,                                                             \
            symbol(box(Way::from, at, n, kUnified, Shape::box) __VA_OPT__(, ) __VA_ARGS__)),                  \
        ROW(symbol, "from-layers", to_device, 1,                                                              \
            symbol(box(Way::from, at, n, kDevice, Shape::layers) __VA_OPT__(, ) __VA_ARGS__)),                \
        ROW(symbol, "to-offset", write, 1,                                                                    \
            symbol(box(Way::to, at, n, kDevice, Shape::offset) __VA_OPT__(, ) __VA_ARGS__)),                  \
        ROW(symbol, "from-offset", to_device, 1,                                                              \
            symbol(box(Way::from, at, n, kUnified, Shape::offset) __VA_OPT__(, ) __VA_ARGS__))
#define PEER_BOXES(symbol, ...)                                                               \
    ROW(symbol, "to", write, 1, symbol(peer_box(Way::to, at, n) __VA_OPT__(, ) __VA_ARGS__)), \
        ROW(symbol, "from", to_device, 1, symbol(peer_box(Way::from, at, n) __VA_OPT__(, ) __VA_ARGS__))
#define BATCHES(symbol, how)                                       \
    ROW(symbol, "to", write, 1, how(&symbol, at, ends.device, n)), \
        ROW(symbol, "from", to_device, 1, how(&symbol, ends.device, at, n))
#define FILL(symbol, unit, value, ...) \
    ROW(symbol, "fill", Does::fill, unit, symbol(at, value, n / unit __VA_OPT__(, ) __VA_ARGS__))
#define FILL_ROWS(symbol, unit, value, ...) \
    ROW(symbol, "fill", Does::fill, unit,   \
        symbol(at, unit* pitch(n / unit), value, width(n / unit), 4 __VA_OPT__(, ) __VA_ARGS__))
#define FILLS(bits, unit, value)                                                                                     \
    FILL(cuMemsetD##bits##_v2, unit, value), FILL(cuMemsetD##bits##_v2_ptds, unit, value),                           \
        FILL(cuMemsetD##bits##Async, unit, value, nullptr), FILL(cuMemsetD##bits##Async_ptsz, unit, value, nullptr), \
        FILL_ROWS(cuMemsetD2D##bits##_v2, unit, value), FILL_ROWS(cuMemsetD2D##bits##_v2_ptds, unit, value),         \
        FILL_ROWS(cuMemsetD2D##bits##Async, unit, value, nullptr),                                                   \
        FILL_ROWS(cuMemsetD2D##bits##Async_ptsz, unit, value, nullptr)

const Case all[] = {
    FROM_HOST(cuMemcpyHtoD_v2),
    FROM_HOST(cuMemcpyHtoD_v2_ptds),
    FROM_HOST(cuMemcpyHtoDAsync_v2, nullptr),
    FROM_HOST(cuMemcpyHtoDAsync_v2_ptsz, nullptr),
    TO_HOST(cuMemcpyDtoH_v2),
    TO_HOST(cuMemcpyDtoH_v2_ptds),
    TO_HOST(cuMemcpyDtoHAsync_v2, nullptr),
    TO_HOST(cuMemcpyDtoHAsync_v2_ptsz, nullptr),
    BOTH(cuMemcpyDtoD_v2),
    BOTH(cuMemcpyDtoD_v2_ptds),
    BOTH(cuMemcpyDtoDAsync_v2, nullptr),
    BOTH(cuMemcpyDtoDAsync_v2_ptsz, nullptr),
    UNIFIED(cuMemcpy),
    UNIFIED(cuMemcpy_ptds),
    UNIFIED(cuMemcpyAsync, nullptr),
    UNIFIED(cuMemcpyAsync_ptsz, nullptr),
    PEER(cuMemcpyPeer),
    PEER(cuMemcpyPeer_ptds),
    PEER(cuMemcpyPeerAsync, nullptr),
    PEER(cuMemcpyPeerAsync_ptsz, nullptr),
    ROW(cuMemcpyDtoA_v2, "from", Does::read_to_array, 1, cuMemcpyDtoA_v2(ends.array, 0, at, n)),
    ROW(cuMemcpyDtoA_v2_ptds, "from", Does::read_to_array, 1, cuMemcpyDtoA_v2_ptds(ends.array, 0, at, n)),
    ROW(cuMemcpyAtoD_v2, "to", write, 1, cuMemcpyAtoD_v2(at, ends.array, 0, n)),
    ROW(cuMemcpyAtoD_v2_ptds, "to", write, 1, cuMemcpyAtoD_v2_ptds(at, ends.array, 0, n)),
    ROWS(cuMemcpy2D_v2),
    ROWS(cuMemcpy2D_v2_ptds),
    ROWS(cuMemcpy2DUnaligned_v2),
    ROWS(cuMemcpy2DUnaligned_v2_ptds),
    ROWS(cuMemcpy2DAsync_v2, nullptr),
    ROWS(cuMemcpy2DAsync_v2_ptsz, nullptr),
    BOXES(cuMemcpy3D_v2),
    BOXES(cuMemcpy3D_v2_ptds),
    BOXES(cuMemcpy3DAsync_v2, nullptr),
    BOXES(cuMemcpy3DAsync_v2_ptsz, nullptr),
    PEER_BOXES(cuMemcpy3DPeer),
    PEER_BOXES(cuMemcpy3DPeer_ptds),
    PEER_BOXES(cuMemcpy3DPeerAsync, nullptr),
    PEER_BOXES(cuMemcpy3DPeerAsync_ptsz, nullptr),
    BATCHES(cuMemcpyBatchAsync, batch_v1),
    BATCHES(cuMemcpyBatchAsync_ptsz, batch_v1),
    BATCHES(cuMemcpyBatchAsync_v2, batch_v2),
    BATCHES(cuMemcpyBatchAsync_v2_ptsz, batch_v2),
    ROW(cuMemcpy3DBatchAsync, "to", write, 1, box_batch_v1(&cuMemcpy3DBatchAsync, Way::to, at, n)),
    ROW(cuMemcpy3DBatchAsync_ptsz, "from", to_device, 1, box_batch_v1(&cuMemcpy3DBatchAsync_ptsz, Way::from, at, n)),
    ROW(cuMemcpy3DBatchAsync_v2, "from", to_device, 1,
        cuMemcpy3DBatchAsync_v2(2, box_batch(Way::from, at, n), 0, nullptr)),
    ROW(cuMemcpy3DBatchAsync_v2_ptsz, "to", write, 1,
        cuMemcpy3DBatchAsync_v2_ptsz(2, box_batch(Way::to, at, n), 0, nullptr)),
    FILLS(8, 1, kFilled),
    FILLS(16, 2, kShort),
    FILLS(32, 4, kWord),
    ROW(cuGraphAddMemcpyNode, "to", write, 1,
        IN_GRAPH(
            cuGraphAddMemcpyNode(made, graph, nullptr, 0, box(Way::to, at, n, kDevice, Shape::box), ends.context))),
    ROW(cuGraphMemcpyNodeSetParams, "from", to_device, 1,
        IN_CHANGED_GRAPH(one_byte(), cuGraphMemcpyNodeSetParams(changed, box(Way::from, at, n, kDevice, Shape::box)))),
    ROW(cuGraphExecMemcpyNodeSetParams, "to", write, 1,
        IN_INSTANCE(one_byte(), cuGraphExecMemcpyNodeSetParams(
                                    instance, changed, box(Way::to, at, n, kDevice, Shape::box), ends.context))),
    ROW(cuGraphAddMemsetNode, "fill", Does::fill, 4,
        IN_GRAPH(cuGraphAddMemsetNode(made, graph, nullptr, 0, fill(at, n, 4), ends.context))),
    ROW(cuGraphMemsetNodeSetParams, "fill", Does::fill, 1,
        IN_CHANGED_GRAPH(one_word(), cuGraphMemsetNodeSetParams(changed, fill(at, n, 1)))),
    ROW(cuGraphExecMemsetNodeSetParams, "fill", Does::fill, 2,
        IN_INSTANCE(one_word(), cuGraphExecMemsetNodeSetParams(instance, changed, fill(at, n, 2), ends.context))),
    ROW(cuGraphAddNode, "to", write, 1, IN_GRAPH(cuGraphAddNode(made, graph, nullptr, 0, copy_node(Way::to, at, n)))),
    ROW(cuGraphAddNode_v2, "fill", Does::fill, 4,
        IN_GRAPH(cuGraphAddNode_v2(made, graph, nullptr, nullptr, 0, fill_node(at, n, 4)))),
    ROW(cuGraphNodeSetParams, "from", to_device, 1,
        IN_CHANGED_GRAPH(one_byte(), cuGraphNodeSetParams(changed, copy_node(Way::from, at, n)))),
    ROW(cuGraphExecNodeSetParams, "fill", Does::fill, 2,
        IN_INSTANCE(one_word(), cuGraphExecNodeSetParams(instance, changed, fill_node(at, n, 2)))),
};

}  // namespace

std::span<const Case> cases() { return all; }

}  // namespace bounds
