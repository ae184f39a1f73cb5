// Graphs with allocation nodes. They take their memory when they are launched or uploaded, which can't be undone: so
// what they need is read when they are instantiated and reserved before each launch.
#include "shim/driver/counted_pool.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

using Bytes = GraphNeeds::Bytes;

// Adds up the allocation nodes of a graph and of those inside it. What can't be read can't be launched either.
void add_up(CUgraph graph, Bytes* bytes) {
    std::size_t count = 0;
    if (CUSLICE_REAL(cuGraphGetNodes)(graph, nullptr, &count) != CUDA_SUCCESS || !count) return;
    PageVector<CUgraphNode> nodes;
    while (nodes.size() < count)
        if (!nodes.push_back(nullptr)) return nodes.release();
    if (CUSLICE_REAL(cuGraphGetNodes)(graph, nodes.begin(), &count) != CUDA_SUCCESS) return nodes.release();
    for (std::size_t i = 0; i < count; i++) {
        CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
        CUSLICE_REAL(cuGraphNodeGetType)(nodes[i], &type);
        CUgraph child = nullptr;
        CUDA_MEM_ALLOC_NODE_PARAMS params{};
        if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
            CUSLICE_REAL(cuGraphChildGraphNodeGetGraph)(nodes[i], &child) == CUDA_SUCCESS)
            add_up(child, bytes);
        if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            CUSLICE_REAL(cuGraphMemAllocNodeGetParams)(nodes[i], &params) != CUDA_SUCCESS ||
            params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            continue;
        VirtualGpu* gpu = process().gpu_of(params.poolProps.location.id);
        if (!gpu || !gpu->limited()) continue;
        bytes->on[gpu->ordinal()] += Budget::charged(params.bytesize);
        bytes->any = true;
    }
    nodes.release();
}

// Reserves on one GPU after the other and then calls the driver.
struct Launch {
    Function function;
    const Bytes& bytes;
    CUresult (*call)(void*);
    void* argument;

    CUresult from(int ordinal) const {
        while (ordinal < process().gpu_count() && !bytes.on[ordinal]) ordinal++;
        if (ordinal == process().gpu_count()) return call(argument);
        const auto never = [] { return false; };  // nothing undoes a launch; a captured one has no memory of its own
        return counted_from_pool(
            function, &process().gpu(ordinal), MemoryPools::kGraphs, bytes.on[ordinal],
            [&] { return from(ordinal + 1); }, never, never);
    }
};

template <typename Call>
CUresult reserved(Function function, const Bytes& bytes, Call call) {
    const auto plain = [](void* argument) { return (*static_cast<Call*>(argument))(); };
    return Launch{function, bytes, plain, &call}.from(0);
}

template <typename Call>
CUresult counted_launch(Function function, CUgraphExec graph, Call call) {
    if (gpu_state().graph_needs.empty()) return call();
    const HookEntry entry;
    if (!entry.counts()) return call();
    const Bytes bytes = gpu_state().graph_needs.of(graph);
    return bytes.any ? reserved(function, bytes, call) : call();
}

// `uploads`: the instance takes its memory here already.
template <typename Call>
CUresult counted_instance(Function function, CUgraphExec* instance, CUgraph graph, bool uploads, Call call) {
    const HookEntry entry;
    if (!entry.counts()) return call();
    Bytes bytes;
    add_up(graph, &bytes);
    if (!bytes.any) return call();
    const CUresult result = uploads ? reserved(function, bytes, call) : call();
    if (result != CUDA_SUCCESS || gpu_state().graph_needs.instantiated(*instance, bytes)) return result;
    CUSLICE_REAL(cuGraphExecDestroy)(*instance);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

bool uploads(unsigned long long flags) { return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0; }

}  // namespace

CUSLICE_HOOK cuGraphInstantiate(CUgraphExec* instance, CUgraph graph, CUgraphNode* error_node, char* log,
                                size_t log_size) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_instance(Function::cuGraphInstantiate, instance, graph, false, [&] {
        return CUSLICE_REAL(cuGraphInstantiate)(instance, graph, error_node, log, log_size);
    });
}

CUSLICE_HOOK cuGraphInstantiate_v2(CUgraphExec* instance, CUgraph graph, CUgraphNode* error_node, char* log,
                                   size_t log_size) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_instance(Function::cuGraphInstantiate_v2, instance, graph, false, [&] {
        return CUSLICE_REAL(cuGraphInstantiate_v2)(instance, graph, error_node, log, log_size);
    });
}

CUSLICE_HOOK cuGraphInstantiateWithFlags(CUgraphExec* instance, CUgraph graph, unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_instance(Function::cuGraphInstantiateWithFlags, instance, graph, uploads(flags),
                            [&] { return CUSLICE_REAL(cuGraphInstantiateWithFlags)(instance, graph, flags); });
}

CUSLICE_HOOK cuGraphInstantiateWithParams(CUgraphExec* instance, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_instance(Function::cuGraphInstantiateWithParams, instance, graph, params && uploads(params->flags),
                            [&] { return CUSLICE_REAL(cuGraphInstantiateWithParams)(instance, graph, params); });
}

CUSLICE_HOOK cuGraphInstantiateWithParams_ptsz(CUgraphExec* instance, CUgraph graph,
                                               CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_instance(Function::cuGraphInstantiateWithParams_ptsz, instance, graph,
                            params && uploads(params->flags),
                            [&] { return CUSLICE_REAL(cuGraphInstantiateWithParams_ptsz)(instance, graph, params); });
}

CUSLICE_HOOK cuGraphLaunch(CUgraphExec graph, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_launch(Function::cuGraphLaunch, graph, [&] { return CUSLICE_REAL(cuGraphLaunch)(graph, stream); });
}

CUSLICE_HOOK cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_launch(Function::cuGraphLaunch_ptsz, graph,
                          [&] { return CUSLICE_REAL(cuGraphLaunch_ptsz)(graph, stream); });
}

CUSLICE_HOOK cuGraphUpload(CUgraphExec graph, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_launch(Function::cuGraphUpload, graph, [&] { return CUSLICE_REAL(cuGraphUpload)(graph, stream); });
}

CUSLICE_HOOK cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_launch(Function::cuGraphUpload_ptsz, graph,
                          [&] { return CUSLICE_REAL(cuGraphUpload_ptsz)(graph, stream); });
}

CUSLICE_HOOK cuGraphExecDestroy(CUgraphExec graph) {
    if (ready() != Readiness::ready) return unavailable();
    if (gpu_state().graph_needs.empty()) return CUSLICE_REAL(cuGraphExecDestroy)(graph);
    const Uncancelled locked;
    // Before the driver's end of it, after which another thread can have the same handle.
    const Bytes bytes = gpu_state().graph_needs.of(graph);
    gpu_state().graph_needs.ended(graph);
    const CUresult result = CUSLICE_REAL(cuGraphExecDestroy)(graph);
    if (result != CUDA_SUCCESS && bytes.any) gpu_state().graph_needs.instantiated(graph, bytes);
    return result;
}

}  // namespace cuslice
