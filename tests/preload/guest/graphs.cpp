// SPDX-License-Identifier: Apache-2.0
// Graphs with memory of their own.
#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

// Allocation nodes of one size, and with `frees` a free node for each behind all of them.
CUresult build(const Driver& d, CUgraph graph, size_t bytes, size_t count, bool frees,
               std::vector<CUdeviceptr>* blocks) {
    CUgraphNode node = nullptr;
    for (size_t i = 0; i < count; i++) {
        CUDA_MEM_ALLOC_NODE_PARAMS params{};
        params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        params.bytesize = bytes;
        const CUresult result = d.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params);
        if (result != CUDA_SUCCESS)
            return result;
        blocks->push_back(params.dptr);
    }
    if (!frees)
        return CUDA_SUCCESS;
    for (const CUdeviceptr block : *blocks) {
        const CUresult result = d.cuGraphAddMemFreeNode(&node, graph, nullptr, 0, block);
        if (result != CUDA_SUCCESS)
            return result;
    }
    blocks->clear();
    return CUDA_SUCCESS;
}

// The same by a capture: one allocation, and its free.
CUresult capture(const Driver& d, CUgraph* graph, size_t bytes, bool frees, std::vector<CUdeviceptr>* blocks) {
    CUstream stream = nullptr;
    CUdeviceptr block = 0;
    d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUresult result = d.cuMemAllocAsync(&block, bytes, stream);
    if (result == CUDA_SUCCESS && frees)
        result = d.cuMemFreeAsync(block, stream);
    if (result == CUDA_SUCCESS && !frees)
        blocks->push_back(block);
    const CUresult ended = d.cuStreamEndCapture(stream, graph);
    d.cuStreamDestroy_v2(stream);
    return result == CUDA_SUCCESS ? ended : result;
}

std::string instantiate(Program& p, const std::string& name, CUresult built, Program::Graph graph,
                        unsigned long long flags) {
    if (built == CUDA_SUCCESS)
        built = p.driver.cuGraphInstantiateWithFlags(&graph.instance, graph.graph, flags);
    if (built == CUDA_SUCCESS)
        p.graphs[name] = graph;
    return answer(built);
}

}  // namespace

void add_graph_commands(Commands& commands) {
    // graph NAME BYTES COUNT free|leave [FLAGS]
    commands["graph"] = [](Program& p, const Words& w) {
        Program::Graph graph;
        p.driver.cuGraphCreate(&graph.graph, 0);
        const CUresult built =
            build(p.driver, graph.graph, number(w.at(1)), number(w.at(2)), w.at(3) == "free", &graph.blocks);
        return instantiate(p, w.at(0), built, graph, w.size() > 4 ? number(w[4]) : 0);
    };
    // capture NAME BYTES free|leave
    commands["capture"] = [](Program& p, const Words& w) {
        Program::Graph graph;
        const CUresult built = capture(p.driver, &graph.graph, number(w.at(1)), w.at(2) == "free", &graph.blocks);
        return instantiate(p, w.at(0), built, graph, 0);
    };
    commands["launch"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuGraphLaunch(p.graphs.at(w.at(0)).instance, nullptr));
    };
    commands["upload"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuGraphUpload(p.graphs.at(w.at(0)).instance, nullptr));
    };
    // graphfree NAME: what its launch has left
    commands["graphfree"] = [](Program& p, const Words& w) {
        CUresult first = CUDA_SUCCESS;
        for (const CUdeviceptr block : p.graphs.at(w.at(0)).blocks) {
            const CUresult result = p.driver.cuMemFreeAsync(block, nullptr);
            if (first == CUDA_SUCCESS)
                first = result;
        }
        return answer(first);
    };
    commands["ungraph"] = [](Program& p, const Words& w) {
        const Program::Graph graph = p.graphs.at(w.at(0));
        p.driver.cuGraphDestroy(graph.graph);
        return answer(p.driver.cuGraphExecDestroy(graph.instance));
    };
    commands["graphtrim"] = [](Program& p, const Words&) { return answer(p.driver.cuDeviceGraphMemTrim(0)); };
}

}  // namespace guest
