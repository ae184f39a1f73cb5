// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/graph_needs.h"

#include <algorithm>

namespace cuslice {

size_t GraphNeeds::first_of(CUgraphExec graph) const {
    const auto less = [](const Need& need, CUgraphExec wanted) { return need.graph < wanted; };
    return static_cast<size_t>(std::lower_bound(needs_.begin(), needs_.end(), graph, less) - needs_.begin());
}

bool GraphNeeds::instantiated(CUgraphExec graph, const Bytes& bytes) {
    ended(graph);  // a handle that came back without our having seen its end
    LockGuard lock(mutex_);
    for (int gpu = 0; gpu < kMaxGpus; gpu++) {
        if (!bytes.on[gpu])
            continue;
        if (!needs_.insert_at(first_of(graph), {graph, gpu, bytes.on[gpu]}))
            return false;
        count_.store(needs_.size() + looked_at_, std::memory_order_relaxed);
    }
    return true;
}

void GraphNeeds::ended(CUgraphExec graph) {
    LockGuard lock(mutex_);
    for (const size_t i = first_of(graph); i < needs_.size() && needs_[i].graph == graph;)
        needs_.erase_at(i);
    count_.store(needs_.size() + looked_at_, std::memory_order_relaxed);
}

GraphNeeds::Bytes GraphNeeds::of(CUgraphExec graph) {
    Bytes bytes;
    LockGuard lock(mutex_);
    for (size_t i = first_of(graph); i < needs_.size() && needs_[i].graph == graph; i++) {
        bytes.on[needs_[i].gpu] = needs_[i].bytes;
        bytes.any = true;
    }
    return bytes;
}

}  // namespace cuslice
