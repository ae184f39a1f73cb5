// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of graphs. An allocation node has its address from the moment it is made, in every launch the same; memory is
// taken when the graph is launched (or uploaded), into a pool that the device keeps for its graphs until it is trimmed.

#include <memory>

#include "fake/driver/gpu.h"
#include "fake/driver/graph_exec.h"

namespace cuslice::fake {

/// Memory of an allocation node: an address, and the bytes behind it while it is live. It stays as long as a node, an
/// instance or its own life needs it.
struct GraphBlock {
    Gpu* gpu = nullptr;
    Address at = 0;
    uint64_t asked = 0;
    CUgraph graph = nullptr;  // whose node it is
    CUgraph freed_in = nullptr;
    bool live = false;
    std::shared_ptr<GraphBlock> alive;  // itself, while it is live

    ~GraphBlock();
};

/// Memory that a device keeps for its graphs. The driver's lock is held.
struct GraphPool {
    uint64_t reserved = 0, reserved_high = 0;  // charged; a multiple of the profile's chunk
    uint64_t used = 0, used_high = 0;
};
GraphPool& graph_pool(const Gpu& gpu);
void trim_graph_pool(Gpu& gpu);
/// The device is reset: nothing is live any more.
void end_graph_pool(Gpu& gpu);

/// cuGraphAddMemAllocNode and cuGraphAddMemFreeNode, for edges with data as well. They take the driver's lock.
CUresult add_allocation(CUgraph graph, const GivenDependencies& given, CUDA_MEM_ALLOC_NODE_PARAMS* params,
                        CUgraphNode* out);
CUresult add_free(CUgraph graph, const GivenDependencies& given, CUdeviceptr address, CUgraphNode* out);

// The driver's lock is held in all of these.

/// Appends an allocation node to a graph.
CUresult add_memory_node(CUgraph graph, const Dependencies& after, Gpu& gpu, uint64_t bytes, Address& out,
                         CUgraphNode& node);
/// Appends a node that frees what an allocation node made.
CUresult add_free_node(CUgraph graph, const Dependencies& after, Address address, CUgraphNode& node);
/// True if the address belongs to an allocation node.
bool is_graph_memory(Address address);
/// Ends a live allocation that its graph leaves to others; `done` has to run when the stream gets there.
CUresult free_graph_memory(Address address, Task& done);

/// Takes what an upload of the instance makes sure of.
CUresult reserve_graph_memory(const GraphExec& exec);
/// Takes what a launch needs; `done` has to run after its last task.
CUresult begin_graph_launch(const GraphExec& exec, Task& done);

}  // namespace cuslice::fake
