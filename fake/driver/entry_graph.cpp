// SPDX-License-Identifier: Apache-2.0
// Graphs: what captures made, instantiated and launched. Nodes that are added one by one: entry_graph_node.cpp, and
// those of memory entry_graph_memory.cpp; what can be changed in an instance: entry_graph_exec.cpp.

#include <algorithm>

#include "fake/driver/capture.h"
#include "fake/driver/graph_conditional.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/work_fault.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned long long kAllFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    if (out == nullptr || (flags & ~kAllFlags) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
        CUSLICE_UNSUPPORTED("graphs that devices launch");
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    if (graph->is_child)
        return CUDA_ERROR_INVALID_VALUE;
    // Documented for graphs with memory nodes: one instance at a time. With which error is not.
    if (graph->has_memory && !graph->instance.expired())
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(check_conditional_nodes(*graph));
    CUSLICE_TRY(refuse_unsafe());
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
            return bad;
        }
    }
    *out = exec_handle;
    return CUDA_SUCCESS;
}

CUresult instantiate_with_log(CUgraphExec* out, CUgraph graph, CUgraphNode* error, char* log, size_t size) {
    if (error != nullptr)
        *error = nullptr;
    if (log != nullptr && size > 0)
        *log = '\0';
    return instantiate(out, graph, 0);
}

CUresult instantiate_with(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params, DefaultStream) {
    if (params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = instantiate(out, graph, params->flags);
    const Graph* made_of = graphs.find(graph);
    params->hErrNode_out = nullptr;
    params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    if (result != CUDA_SUCCESS && made_of != nullptr && has_unused_condition(*made_of))
        params->result_out = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    return result;
}

CUresult submit_nodes(Stream& stream, const std::vector<ExecNode>& nodes) {
    for (const ExecNode& node : nodes) {
        CUresult bad = CUDA_SUCCESS;
        if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            bad = submit_nodes(stream, node.children);
            if (bad == CUDA_SUCCESS && !node.objects->empty())
                bad = submit(stream, CU_GRAPH_NODE_TYPE_EMPTY, [objects = node.objects] {});
        } else if (node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            if (node.chosen != ConditionalBodies::kNone)
                bad = submit_nodes(stream, {node.children[static_cast<size_t>(node.chosen)]});
        } else if (node.type == CU_GRAPH_NODE_TYPE_HOST) {
            bad = submit_host(stream, node.task);
        } else {
            bad = submit(stream, node.type, node.task);
        }
        if (bad != CUDA_SUCCESS)
            return bad;
    }
    return CUDA_SUCCESS;
}

CUresult launch(CUgraphExec handle, CUstream stream_handle, DefaultStream form) {
    CUSLICE_FIND_ARGUMENT(exec, graph_execs, handle);
    CUSLICE_FIND_STREAM(stream, stream_handle, form);
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
        CUSLICE_TRY(submit(*stream, CU_GRAPH_NODE_TYPE_EMPTY, std::move(done)));
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

/// The first `*count` nodes, or how many there are if `out` is null.
CUresult give_nodes(const std::vector<CUgraphNode>& nodes, CUgraphNode* out, size_t* count) {
    if (count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (out == nullptr) {
        *count = nodes.size();
        return CUDA_SUCCESS;
    }
    const size_t given = std::min(*count, nodes.size());
    std::copy_n(nodes.begin(), given, out);
    std::fill(out + given, out + *count, nullptr);
    *count = given;
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

CUSLICE_ENTRY(cuGraphAddEmptyNode, out, handle, dependencies, count) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(check_dependencies(handle, dependencies, count));
    *out = append_node(handle, CU_GRAPH_NODE_TYPE_EMPTY, [] {});
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphGetNodes, handle, nodes, count) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    return give_nodes(graph->nodes, nodes, count);
}

CUSLICE_ENTRY(cuGraphGetRootNodes, handle, nodes, count) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    const auto first = graph->nodes.begin();
    return give_nodes({first, first + (graph->nodes.empty() ? 0 : 1)}, nodes, count);
}

CUSLICE_ENTRY(cuGraphNodeGetType, handle, type) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    if (type == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY_PAIR(cuGraphInstantiate, instantiate_with_log, out, graph, error, log, size)

CUSLICE_ENTRY(cuGraphInstantiateWithFlags, out, graph, flags) { return instantiate(out, graph, flags); }

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
