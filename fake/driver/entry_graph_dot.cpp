// SPDX-License-Identifier: Apache-2.0
// Graphs as text for Graphviz: nodes by type and number, edges, and parameters where they are asked for.

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <unordered_map>

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph.h"
#include "fake/driver/graph_memory.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned kDotFlags = (CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS << 1) - 1;

const char* name_of(NodeType type) {
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return "kernel";
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return "memcpy";
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return "memset";
        case CU_GRAPH_NODE_TYPE_HOST:
            return "host";
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return "graph";
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return "empty";
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return "wait event";
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return "event record";
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return "mem alloc";
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return "mem free";
        default:
            return "conditional";
    }
}

template <typename... Values>
std::string line(const char* format, Values... values) {
    char text[256];
    std::snprintf(text, sizeof text, format, values...);
    return std::string("\\n") + text;
}

/// Parameters that this flag, or the one for all, asks for.
std::string parameters_of(const GraphNode& node, unsigned flags) {
    const auto asked = [flags](unsigned flag) { return (flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0; };
    const bool allocates = node.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    if (node.memory != nullptr && asked(allocates ? CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS
                                                  : CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
        return line("address %#" PRIx64 ", %" PRIu64 " bytes", uint64_t{node.memory->at}, node.memory->asked);
    if (node.work.parameters == nullptr)
        return "";
    const CUgraphNodeParams& all = node.work.parameters->all;
    switch (all.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
                return "";
            return line("<<<{%u,%u,%u}, {%u,%u,%u}, %u>>>", all.kernel.gridDimX, all.kernel.gridDimY,
                        all.kernel.gridDimZ, all.kernel.blockDimX, all.kernel.blockDimY, all.kernel.blockDimZ,
                        all.kernel.sharedMemBytes);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
                return "";
            return line("%zu x %zu x %zu bytes", all.memcpy.copyParams.WidthInBytes, all.memcpy.copyParams.Height,
                        all.memcpy.copyParams.Depth);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
                return "";
            return line("%#llx, value %u, %zu x %zu elements of %u bytes", all.memset.dst, all.memset.value,
                        all.memset.width, all.memset.height, all.memset.elementSize);
        case CU_GRAPH_NODE_TYPE_HOST:
            if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
                return "";
            return line("%p (%p)", reinterpret_cast<void*>(all.host.fn), all.host.userData);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
                return "";
            return line("event %p", static_cast<void*>(event_of(node.work)));
        default:
            return "";
    }
}

/// Writes graphs one after the other, each with those inside it behind it, and numbers them.
class Writer {
  public:
    Writer(std::ostream& out, unsigned flags) : out_(out), flags_(flags) {}

    void write(const Graph& graph) {
        const std::string name = "graph_" + std::to_string(++graphs_written_);
        std::unordered_map<CUgraphNode, std::string> names;
        for (size_t i = 0; i < graph.nodes.size(); i++)
            names[graph.nodes[i]] = "\"" + name + "_node_" + std::to_string(i) + "\"";
        out_ << "subgraph cluster_" << graphs_written_ << " {\nlabel=\"" << name << "\" graph[style=\"dashed\"];\n";
        for (size_t i = 0; i < graph.nodes.size(); i++)
            write_node(i, graph.nodes[i], names.at(graph.nodes[i]));
        for (const CUgraphNode to : graph.nodes) {
            for (const CUgraphNode from : graph_nodes.find(to)->after.nodes)
                out_ << names.at(from) << " -> " << names.at(to) << ";\n";
        }
        out_ << "}\n";
        for (const CUgraphNode node : graph.nodes)
            write_inside(*graph_nodes.find(node));
    }

  private:
    void write_node(size_t index, CUgraphNode handle, const std::string& name) {
        const GraphNode& node = *graph_nodes.find(handle);
        const bool handles = (flags_ & (CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
        out_ << name << "[style=\"solid\" shape=\"rectangle\" label=\"" << index << "\\n"
             << name_of(node.work.type) << (handles ? line("node %p", static_cast<void*>(handle)) : "")
             << parameters_of(node, flags_) << "\"];\n";
    }

    void write_inside(const GraphNode& node) {
        if (node.child != nullptr)
            write(*graphs.find(node.child));
        if (node.bodies == nullptr)
            return;
        for (const CUgraph body : node.bodies->graphs)
            write(*graphs.find(body));
    }

    std::ostream& out_;
    unsigned flags_;
    int graphs_written_ = 0;
};

}  // namespace

CUSLICE_ENTRY(cuGraphDebugDotPrint, handle, path, flags) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    if (path == nullptr || (flags & ~kDotFlags) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    std::ofstream out(path);
    out << "digraph dot {\n";
    Writer(out, flags).write(*graph);
    out << "}\n" << std::flush;
    return out.good() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
