// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Memory that instantiated graphs need at each launch. Only those with allocation nodes are here. Thread-safe.
class GraphNeeds {
  public:
    static constexpr int kMaxGpus = 64;

    // Bytes on each GPU, the most that a launch can take: the sum over the allocation nodes. A driver may let nodes
    // that follow each other have the same memory, but nothing says when.
    struct Bytes {
        uint64_t on[kMaxGpus] = {};
        bool any = false;
    };

    // True if there is none, and no launch is looked at. Takes no lock.
    bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

    // From now on each launch is looked at, whatever it needs. Before the first one.
    void look_at_all() {
        looked_at_ = 1;
        count_.fetch_add(1, std::memory_order_relaxed);
    }

    // False if there is no memory to write it down in.
    bool instantiated(CUgraphExec graph, const Bytes& bytes);
    void ended(CUgraphExec graph);
    Bytes of(CUgraphExec graph);

  private:
    struct Need {
        CUgraphExec graph;
        int64_t gpu;
        uint64_t bytes;
    };
    size_t first_of(CUgraphExec graph) const CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::graph_needs};
    PageVector<Need> needs_ CUSLICE_GUARDED_BY(mutex_);  // sorted by graph
    size_t looked_at_ = 0;                               // 1: all
    std::atomic<size_t> count_{0};                       // of needs_, and looked_at_
};

}  // namespace cuslice
