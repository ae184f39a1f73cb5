// SPDX-License-Identifier: Apache-2.0
#include "lab/hardware/spin.h"

#include <cstdint>

namespace cuslice::check {

namespace {

// Longer than it takes from one kernel of a stream to the next, shorter than drivers' time slices.
constexpr uint64_t kPauseNanoseconds = 100'000;
constexpr uint32_t kMostTurns = 1 << 16;

struct Turn {
    uint64_t begin;
    uint64_t end;
};

/// As the kernel has them in kernels.ptx.
struct Notes {
    uint64_t last_step;
    uint64_t turn_began;
    uint64_t turns;
    uint64_t padding;
};

constexpr size_t kBytes = sizeof(Notes) + kMostTurns * sizeof(Turn);

}  // namespace

Spin::Spin() : module_(load_kernels("kernels.ptx")), kernel_(kernel(module_, "spin")) {
    arguments_.pause = kPauseNanoseconds;
    arguments_.most = kMostTurns;
    MUST(cuMemAlloc_v2, &arguments_.notes, kBytes);
    forget();
}

Spin::~Spin() {
    MUST(cuMemFree_v2, arguments_.notes);
    MUST(cuModuleUnload, module_);
}

void Spin::launch(CUstream stream) {
    MUST(cuLaunchKernel, kernel_, 1, 1, 1, 1, 1, 1, 0, stream, arguments_.addresses, nullptr);
}

CUgraphExec Spin::graph(int kernels) {
    CUDA_KERNEL_NODE_PARAMS_v2 node{};
    node.func = kernel_;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments_.addresses;

    CUgraph graph = nullptr;
    CUgraphNode last = nullptr;
    MUST(cuGraphCreate, &graph, 0);
    for (int i = 0; i < kernels; i++) {
        const CUgraphNode before = last;
        MUST(cuGraphAddKernelNode_v2, &last, graph, &before, before ? 1 : 0, &node);
    }
    CUgraphExec exec = nullptr;
    MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
    MUST(cuGraphDestroy, graph);
    return exec;
}

void Spin::forget() {
    MUST(cuMemsetD8_v2, arguments_.notes, 0, sizeof(Notes));
    MUST(cuCtxSynchronize);
}

std::vector<double> Spin::turns_ms() const {
    Notes notes{};
    MUST(cuMemcpyDtoH_v2, &notes, arguments_.notes, sizeof notes);
    std::vector<Turn> turns(notes.turns);
    if (!turns.empty())
        MUST(cuMemcpyDtoH_v2, turns.data(), arguments_.notes + sizeof notes, turns.size() * sizeof(Turn));
    std::vector<double> milliseconds;
    for (const Turn& turn : turns)
        milliseconds.push_back(static_cast<double>(turn.end - turn.begin) / 1e6);
    return milliseconds;
}

}  // namespace cuslice::check
