// SPDX-License-Identifier: Apache-2.0
// Graphs with allocation nodes. They take their memory when they are launched or uploaded, which can't be undone: so
// what they need is read when they are instantiated and reserved before each launch.
#include "shim/driver/counted_pool.h"
#include "shim/driver/export.h"
#include "shim/driver/gates.h"

namespace cuslice {

namespace {

// The memory of graphs that are instantiated.
GraphNeeds& needs() { return gpu_state().graph_needs; }

using Bytes = GraphNeeds::Bytes;

// Adds up the allocation nodes of a graph and of those inside it. What can't be read can't be launched either.
void add_up(CUgraph graph, Bytes* bytes) {
    size_t count = 0;
    if (CUSLICE_REAL(cuGraphGetNodes)(graph, nullptr, &count) != CUDA_SUCCESS || !count)
        return;
    PageVector<CUgraphNode> nodes;
    while (nodes.size() < count)
        if (!nodes.push_back(nullptr))
            return nodes.release();
    if (CUSLICE_REAL(cuGraphGetNodes)(graph, nodes.begin(), &count) != CUDA_SUCCESS)
        return nodes.release();
    for (size_t i = 0; i < count; i++) {
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
        if (!gpu || !gpu->limited())
            continue;
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
        while (ordinal < process().gpu_count() && !bytes.on[ordinal])
            ordinal++;
        if (ordinal == process().gpu_count())
            return call(argument);
        const auto never = [] { return false; };  // nothing undoes a launch
        return counted_from_pool(
            function, &process().gpu(ordinal), MemoryPools::kGraphs, bytes.on[ordinal],
            [&] { return from(ordinal + 1); }, never);
    }
};

template <typename Call>
CUresult reserved(Function function, const Bytes& bytes, Call call) {
    const auto plain = [](void* argument) { return (*static_cast<Call*>(argument))(); };
    return Launch{function, bytes, plain, &call}.from(0);
}

constexpr auto counted_launch = [](auto real, CUgraphExec graph, CUstream stream) {
    const auto call = [&] { return real(graph, stream); };
    const HookEntry entry;
    if (!entry.counts())
        return call();
    const Bytes bytes = needs().of(graph);
    return bytes.any ? reserved(real.function, bytes, call) : call();
};

// `uploads`: the instance takes its memory here already.
template <typename Real, typename... Arguments>
CUresult counted_instance(Real real, bool uploads, CUgraphExec* instance, CUgraph graph, Arguments... arguments) {
    const HookEntry entry;
    Bytes bytes;
    if (entry.counts())
        add_up(graph, &bytes);
    if (!bytes.any)
        return real(instance, graph, arguments...);
    OutParameter<CUgraphExec> made(instance);
    const auto call = [&] { return real(made.place(), graph, arguments...); };
    const CUresult result = uploads ? reserved(real.function, bytes, call) : call();
    if (result != CUDA_SUCCESS)
        return result;
    if (!needs().instantiated(*made, bytes)) {
        CUSLICE_REAL(cuGraphExecDestroy)(*made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.keep();
    return result;
}

constexpr auto launch = [](auto real, CUgraphExec graph, CUstream stream) {
    if (needs().empty())
        return real(graph, stream);
    const GatedLaunch turn(meant_by<real.function>(stream));
    return counted_launch(real, graph, stream);
};
constexpr auto upload = [](auto real, CUgraphExec graph, CUstream stream) {
    return needs().empty() ? real(graph, stream) : counted_launch(real, graph, stream);
};

bool uploads(unsigned long long flags) { return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0; }

constexpr auto instantiate = [](auto real, CUgraphExec* instance, CUgraph graph, auto... error) {
    return counted_instance(real, false, instance, graph, error...);
};
constexpr auto instantiate_with = [](auto real, CUgraphExec* instance, CUgraph graph,
                                     CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    return counted_instance(real, params && uploads(params->flags), instance, graph, params);
};

}  // namespace

CUSLICE_HOOK_FORM(cuGraphInstantiate, instantiate, instance, graph, error_node, log, log_size)
CUSLICE_HOOK_FORM(cuGraphInstantiate_v2, instantiate, instance, graph, error_node, log, log_size)
CUSLICE_HOOK_FORM(cuGraphInstantiateWithParams, instantiate_with, instance, graph, params)
CUSLICE_HOOK_FORM(cuGraphInstantiateWithParams_ptsz, instantiate_with, instance, graph, params)

CUSLICE_HOOK(cuGraphInstantiateWithFlags, instance, graph, flags) {
    return counted_instance(CUSLICE_REAL(cuGraphInstantiateWithFlags), uploads(flags), instance, graph, flags);
}

CUSLICE_HOOK_FORM(cuGraphLaunch, launch, graph, stream)
CUSLICE_HOOK_FORM(cuGraphLaunch_ptsz, launch, graph, stream)
CUSLICE_HOOK_FORM(cuGraphUpload, upload, graph, stream)
CUSLICE_HOOK_FORM(cuGraphUpload_ptsz, upload, graph, stream)

CUSLICE_HOOK(cuGraphExecDestroy, graph) {
    if (needs().empty())
        return CUSLICE_REAL(cuGraphExecDestroy)(graph);
    const DisableCancellation locked;
    // Before the driver's end of it, after which another thread can have the same handle.
    const Bytes bytes = needs().of(graph);
    needs().ended(graph);
    const CUresult result = CUSLICE_REAL(cuGraphExecDestroy)(graph);
    if (result != CUDA_SUCCESS && bytes.any)
        needs().instantiated(graph, bytes);
    return result;
}

}  // namespace cuslice
