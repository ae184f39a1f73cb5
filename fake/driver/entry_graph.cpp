// SPDX-License-Identifier: Apache-2.0
// Graphs: made, copied, instantiated and launched. Their nodes: entry_graph_node.cpp, those of memory
// entry_graph_memory.cpp, and the edges between them entry_graph_edges.cpp; what can be changed in an instance:
// entry_graph_exec.cpp.

#include <algorithm>
#include <set>

#include "fake/driver/capture.h"
#include "fake/driver/event.h"
#include "fake/driver/give.h"
#include "fake/driver/graph_conditional.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/submit.h"
#include "fake/driver/work_fault.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned long long kAllFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

/// Why a graph can't be instantiated, and because of which node.
struct Refusal {
    CUresult error = CUDA_SUCCESS;
    CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    CUgraphNode node = nullptr;
};

/// Nodes that depend on each other, or on one of those, in the graph or in one inside it.
CUgraphNode node_in_cycle(const Graph& graph) {
    const std::vector<CUgraphNode> order = nodes_in_order(graph);
    const std::set<CUgraphNode> runs(order.begin(), order.end());
    for (const CUgraphNode handle : graph.nodes) {
        if (!runs.contains(handle))
            return handle;
        const GraphNode& node = *graph_nodes.find(handle);
        std::vector<CUgraph> inside = node.bodies != nullptr ? node.bodies->graphs : std::vector<CUgraph>{};
        if (node.child != nullptr)
            inside.push_back(node.child);
        for (const CUgraph inner : inside) {
            if (const CUgraphNode found = node_in_cycle(*graphs.find(inner)); found != nullptr)
                return found;
        }
    }
    return nullptr;
}

bool touches_array(const CUDA_MEMCPY3D& copy) {
    return copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY;
}

/// Documented of graphs that devices launch: kernels, copies without arrays, fills and graphs of these, all in one
/// context. No kernel runs that would launch one.
Refusal check_device_launch(const Graph& graph, CUcontext& context, size_t& work) {
    constexpr auto kNodeType = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    for (const CUgraphNode handle : graph.nodes) {
        const GraphNode& node = *graph_nodes.find(handle);
        if (node.child != nullptr) {
            const Refusal refusal = check_device_launch(*graphs.find(node.child), context, work);
            if (refusal.error != CUDA_SUCCESS)
                return refusal;
            continue;
        }
        CUcontext own = nullptr;
        const NodeParameters* const parameters = node.work.parameters.get();
        if (node.work.type == CU_GRAPH_NODE_TYPE_KERNEL)
            own = parameters->all.kernel.ctx;
        else if (node.work.type == CU_GRAPH_NODE_TYPE_MEMSET)
            own = parameters->all.memset.ctx;
        else if (node.work.type == CU_GRAPH_NODE_TYPE_MEMCPY && parameters != nullptr &&
                 !touches_array(parameters->all.memcpy.copyParams))
            own = parameters->all.memcpy.copyCtx;
        else
            return {CUDA_ERROR_NOT_SUPPORTED, kNodeType, handle};
        if (context != nullptr && own != context)
            return {CUDA_ERROR_NOT_SUPPORTED, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, handle};
        context = own;
        work++;
    }
    return {};
}

Refusal check_graph(const Graph& graph, unsigned long long flags) {
    constexpr Refusal kInvalid{CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
    if (graph.is_child)
        return kInvalid;
    // Documented for graphs with memory nodes: one instance at a time. With which error is not.
    if (graph.has_memory && !graph.instance.expired())
        return kInvalid;
    if (const CUgraphNode node = node_in_cycle(graph); node != nullptr)
        return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node};
    if (has_unused_condition(graph))
        return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr};
    if (const CUresult bad = check_conditional_nodes(graph); bad != CUDA_SUCCESS)
        return {bad, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0)
        return {};
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0)
        return kInvalid;
    CUcontext context = nullptr;
    size_t work = 0;
    const Refusal refusal = check_device_launch(graph, context, work);
    if (refusal.error == CUDA_SUCCESS && work == 0)
        return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, nullptr};
    return refusal;
}

Refusal instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    const auto failed = [](CUresult error) { return Refusal{error, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr}; };
    Graph* const graph = graphs.find(handle);
    if (out == nullptr || (flags & ~kAllFlags) != 0 || graph == nullptr)
        return failed(CUDA_ERROR_INVALID_VALUE);
    if (const Refusal refusal = check_graph(*graph, flags); refusal.error != CUDA_SUCCESS)
        return refusal;
    if (const CUresult bad = refuse_unsafe(); bad != CUDA_SUCCESS)
        return failed(bad);
    const auto [exec_handle, exec] = graph_execs.create();
    exec->flags = flags;
    exec->has_memory = graph->has_memory;
    exec->objects = std::make_shared<const HeldObjects>(graph->objects);
    graph->instance = exec->instance = std::make_shared<int>();
    exec->nodes = exec_nodes(*graph);
    if (exec->has_memory && (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
        const DriverLock hold;
        if (const CUresult bad = reserve_graph_memory(*exec); bad != CUDA_SUCCESS) {
            graph_execs.destroy(exec_handle);
            return failed(bad);
        }
    }
    *out = exec_handle;
    return {};
}

CUresult instantiate_with_log(CUgraphExec* out, CUgraph graph, CUgraphNode* error, char* log, size_t size) {
    const Refusal refusal = instantiate(out, graph, 0);
    if (error != nullptr)
        *error = refusal.node;
    if (log != nullptr && size > 0)
        *log = '\0';
    return refusal.error;
}

CUresult instantiate_with(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params, DefaultStream) {
    if (params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const Refusal refusal = instantiate(out, graph, params->flags);
    params->hErrNode_out = refusal.node;
    params->result_out = refusal.why;
    return refusal.error;
}

/// CUDA_ERROR_INVALID_HANDLE if an event has ended that a node names, CUDA_ERROR_CAPTURED_EVENT if one would be waited
/// for that was last recorded in a capture, and by no node of `recorded` since: nothing is submitted then.
CUresult check_events(const std::vector<ExecNode>& nodes, std::set<CUevent>& recorded) {
    for (const ExecNode& node : nodes) {
        const bool records = node.work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
        if (records || node.work.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
            const CUevent handle = event_of(node.work);
            CUSLICE_FIND_IN(event, events, handle);
            if (records)
                recorded.insert(handle);
            else if (event->captured && !recorded.contains(handle))
                return CUDA_ERROR_CAPTURED_EVENT;
        }
        CUSLICE_TRY(check_events(node.children, recorded));
    }
    return CUDA_SUCCESS;
}

CUresult submit_nodes(Stream& stream, const std::vector<ExecNode>& nodes);

CUresult submit_child(Stream& stream, const ExecNode& node) {
    CUSLICE_TRY(submit_nodes(stream, node.children));
    return node.objects->empty() ? CUDA_SUCCESS
                                 : submit(stream, {CU_GRAPH_NODE_TYPE_EMPTY, [objects = node.objects] {}});
}

CUresult submit_event(Stream& stream, const NodeWork& work) {
    if (stream.capture != nullptr)
        return submit(stream, work);
    Event& event = *events.find(event_of(work));
    if (work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        return record_in_stream(stream, event);
    wait_in_stream(stream, event);
    return CUDA_SUCCESS;
}

CUresult submit_node(Stream& stream, const ExecNode& node) {
    switch (node.work.type) {
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return submit_child(stream, node);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return node.chosen == ConditionalBodies::kNone
                       ? CUDA_SUCCESS
                       : submit_child(stream, node.children[static_cast<size_t>(node.chosen)]);
        case CU_GRAPH_NODE_TYPE_HOST:
            return submit_host(stream, node.work);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return submit_event(stream, node.work);
        default:
            return submit(stream, node.enabled ? node.work : NodeWork{});
    }
}

CUresult submit_nodes(Stream& stream, const std::vector<ExecNode>& nodes) {
    for (const ExecNode& node : nodes) {
        CUSLICE_TRY(submit_node(stream, node));
    }
    return CUDA_SUCCESS;
}

CUresult launch(CUgraphExec handle, CUstream stream_handle, DefaultStream form) {
    CUSLICE_FIND_ARGUMENT(exec, graph_execs, handle);
    CUSLICE_FIND_STREAM(stream, stream_handle, form);
    std::set<CUevent> recorded;
    CUSLICE_TRY(check_events(exec->nodes, recorded));
    Task done;
    if (exec->has_memory) {
        if (stream->capture != nullptr)
            CUSLICE_UNSUPPORTED("capturing the launch of a graph with memory nodes");
        const DriverLock hold;
        CUSLICE_TRY(begin_graph_launch(*exec, done));
    }
    if (const CUresult bad = submit_nodes(*stream, exec->nodes); bad != CUDA_SUCCESS) {
        if (done)
            done();
        return bad;
    }
    if (!exec->objects->empty()) {
        done = [done = std::move(done), objects = exec->objects] {
            if (done)
                done();
        };
    }
    if (done) {
        CUSLICE_TRY(submit(*stream, {CU_GRAPH_NODE_TYPE_EMPTY, std::move(done)}));
    }
    Context* context = live_context(stream->context);
    return context == nullptr ? CUDA_SUCCESS : fault_of_work(*context);
}

CUresult upload(CUgraphExec handle, CUstream stream_handle, DefaultStream form) {
    CUSLICE_FIND_ARGUMENT(exec, graph_execs, handle);
    CUSLICE_FIND_STREAM(stream, stream_handle, form);
    if (!exec->has_memory)
        return CUDA_SUCCESS;  // there is nothing else to upload to
    const DriverLock hold;
    return reserve_graph_memory(*exec);
}

CUresult give_nodes(const std::vector<CUgraphNode>& nodes, CUgraphNode* out, size_t* count) {
    if (count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *count = give_first(nodes, out, *count);
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuGraphCreate, out, flags) {
    if (out == nullptr || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = graphs.create().first;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphDestroy, handle) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    return !graph->is_child && destroy_graph(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUSLICE_ENTRY(cuGraphClone, out, handle) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (!graph->can_be_copied())
        return CUDA_ERROR_NOT_SUPPORTED;
    *out = clone_graph(handle);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphNodeFindInClone, out, original, clone) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, clone);
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const auto copies = [&](CUgraphNode node) { return graph_nodes.find(node)->original == original; };
    const auto found = std::find_if(graph->nodes.begin(), graph->nodes.end(), copies);
    if (original == nullptr || found == graph->nodes.end())
        return CUDA_ERROR_INVALID_VALUE;
    *out = *found;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphGetNodes, handle, nodes, count) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    return give_nodes(graph->nodes, nodes, count);
}

CUSLICE_ENTRY(cuGraphGetRootNodes, handle, nodes, count) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    std::vector<CUgraphNode> roots;
    std::copy_if(graph->nodes.begin(), graph->nodes.end(), std::back_inserter(roots),
                 [](CUgraphNode node) { return graph_nodes.find(node)->after.size() == 0; });
    return give_nodes(roots, nodes, count);
}

CUSLICE_ENTRY(cuGraphNodeGetType, handle, type) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    if (type == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->work.type;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY_PAIR(cuGraphInstantiate, instantiate_with_log, out, graph, error, log, size)

CUSLICE_ENTRY(cuGraphInstantiateWithFlags, out, graph, flags) { return instantiate(out, graph, flags).error; }

CUSLICE_ENTRY(cuGraphExecGetFlags, handle, flags) {
    CUSLICE_FIND_ARGUMENT(exec, graph_execs, handle);
    if (flags == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphExecDestroy, exec) {
    CUSLICE_TRY(refuse_unsafe());
    return graph_execs.destroy(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUSLICE_STREAM_PAIR(cuGraphInstantiateWithParams, instantiate_with, out, graph, params)
CUSLICE_STREAM_PAIR(cuGraphLaunch, launch, exec, stream)
CUSLICE_STREAM_PAIR(cuGraphUpload, upload, exec, stream)
