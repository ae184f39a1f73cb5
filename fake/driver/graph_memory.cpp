// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "fake/driver/find.h"
#include "fake/driver/state.h"

namespace cuslice::fake {
namespace {

/// Every allocation node's block, by address.
auto& blocks() {
    static auto* all = new std::map<Address, std::weak_ptr<GraphBlock>>;
    return *all;
}

std::shared_ptr<GraphBlock> block_at(Address address) {
    const auto found = blocks().find(address);
    return found == blocks().end() ? nullptr : found->second.lock();
}

/// One device's live bytes in the course of a launch, less those before it: after the latest node, and at most.
struct Course {
    int64_t now = 0, most = 0;
};

/// Goes through the nodes in their order. With `change`, what is live becomes what it is after the launch.
CUresult run_through(const GraphExec& exec, std::map<Gpu*, Course>& courses, bool change) {
    const bool frees_first = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    std::map<GraphBlock*, bool> live;
    for (const ExecNode& node : exec.nodes) {
        GraphBlock* block = node.memory.get();
        if (block == nullptr || live.contains(block))
            continue;
        Course& course = courses[block->gpu];
        live[block] = block->live;
        if (!block->live || !frees_first || node.work.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            continue;
        live[block] = false;
        course.now -= static_cast<int64_t>(rounded(block->asked));
    }
    for (const ExecNode& node : exec.nodes) {
        GraphBlock* block = node.memory.get();
        if (block == nullptr)
            continue;
        const bool allocates = node.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        // Memory of the last launch that nobody has freed, or what isn't there to be freed.
        if (live[block] == allocates)
            return CUDA_ERROR_INVALID_VALUE;
        live[block] = allocates;
        Course& course = courses[block->gpu];
        const auto bytes = static_cast<int64_t>(rounded(block->asked));
        course.now += allocates ? bytes : -bytes;
        course.most = std::max(course.most, course.now);
    }
    if (!change)
        return CUDA_SUCCESS;
    for (const ExecNode& node : exec.nodes) {
        if (node.memory == nullptr)
            continue;
        node.memory->live = live[node.memory.get()];
        node.memory->alive = node.memory->live ? node.memory : nullptr;
    }
    return CUDA_SUCCESS;
}

/// Grows the device's pool so that so much more can be used; false if the GPU has no room for it.
bool make_room(Gpu& gpu, uint64_t more) {
    GraphPool& pool = graph_pool(gpu);
    const uint64_t wanted = round_up(pool.used + more, gpu.spec.pool_chunk);
    if (wanted <= pool.reserved)
        return true;
    if (!gpu.charge(wanted - pool.reserved))
        return false;
    pool.reserved = wanted;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    return true;
}

}  // namespace

GraphBlock::~GraphBlock() { gpu->free_at(gpu->device, at); }

GraphPool& graph_pool(const Gpu& gpu) {
    static auto* all = new GraphPool[64];
    return all[gpu.ordinal];
}

void trim_graph_pool(Gpu& gpu) {
    GraphPool& pool = graph_pool(gpu);
    const uint64_t least = round_up(pool.used, gpu.spec.pool_chunk);
    if (least >= pool.reserved)
        return;
    gpu.release(pool.reserved - least);
    pool.reserved = least;
}

void end_graph_pool(Gpu& gpu) {
    std::vector<std::shared_ptr<GraphBlock>> ended;  // their end frees addresses, and takes them off the list
    for (const auto& [at, weak] : blocks()) {
        const std::shared_ptr<GraphBlock> block = weak.lock();
        if (block == nullptr || block->gpu != &gpu)
            continue;
        block->live = false;
        ended.push_back(std::move(block->alive));
    }
    graph_pool(gpu).used = 0;
    trim_graph_pool(gpu);
}

CUresult add_memory_node(CUgraph handle, const Dependencies& after, Gpu& gpu, uint64_t bytes, Address& out,
                         CUgraphNode& node) {
    if (graphs.find(handle) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(gpu.open());
    // Documented: what is larger than the device is refused where the node is made.
    if (bytes > gpu.capacity())
        return CUDA_ERROR_OUT_OF_MEMORY;
    const auto block = std::make_shared<GraphBlock>();
    {
        block->gpu = &gpu;
        const std::lock_guard hold(gpu.lock);
        const Block place = gpu.device.heap.allocate(bytes, BlockKind::Graph, 0);
        if (!place)
            return CUDA_ERROR_OUT_OF_MEMORY;
        block->at = place.base;
    }
    block->asked = bytes;
    block->graph = handle;
    blocks()[block->at] = block;
    node = append_node(handle, {.work = {CU_GRAPH_NODE_TYPE_MEM_ALLOC}, .after = after, .memory = block});
    out = block->at;
    return CUDA_SUCCESS;
}

CUresult add_free_node(CUgraph handle, const Dependencies& after, Address address, CUgraphNode& node) {
    const std::shared_ptr<GraphBlock> block = block_at(address);
    if (block == nullptr || graphs.find(handle) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    // Once in a graph, and not both in the one that made it and in another.
    if (block->freed_in == handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (block->freed_in != nullptr && (block->freed_in == block->graph || handle == block->graph))
        return CUDA_ERROR_INVALID_VALUE;
    block->freed_in = handle;
    node = append_node(handle, {.work = {CU_GRAPH_NODE_TYPE_MEM_FREE}, .after = after, .memory = block});
    return CUDA_SUCCESS;
}

bool is_graph_memory(Address address) { return block_at(address) != nullptr; }

CUresult free_graph_memory(Address address, Task& done) {
    const std::shared_ptr<GraphBlock> block = block_at(address);
    if (block == nullptr || !block->live || block->freed_in == block->graph)
        return CUDA_ERROR_INVALID_VALUE;
    block->live = false;
    block->alive = nullptr;
    done = [block] {
        const DriverLock hold;
        GraphPool& pool = graph_pool(*block->gpu);
        pool.used -= std::min(pool.used, rounded(block->asked));
    };
    return CUDA_SUCCESS;
}

CUresult reserve_graph_memory(const GraphExec& exec) {
    std::map<Gpu*, Course> courses;
    CUSLICE_TRY(run_through(exec, courses, false));
    for (const auto& [gpu, course] : courses) {
        if (!make_room(*gpu, static_cast<uint64_t>(course.most)))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult begin_graph_launch(const GraphExec& exec, Task& done) {
    CUSLICE_TRY(reserve_graph_memory(exec));
    std::map<Gpu*, Course> courses;
    run_through(exec, courses, true);
    if (courses.empty())
        return CUDA_SUCCESS;
    for (const auto& [gpu, course] : courses) {
        GraphPool& pool = graph_pool(*gpu);
        pool.used += static_cast<uint64_t>(course.most);
        pool.used_high = std::max(pool.used_high, pool.used);
    }
    done = [courses] {
        const DriverLock hold;
        for (const auto& [gpu, course] : courses)
            graph_pool(*gpu).used += static_cast<uint64_t>(course.now - course.most);
    };
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
