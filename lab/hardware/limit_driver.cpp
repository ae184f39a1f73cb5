// SPDX-License-Identifier: Apache-2.0
// A program on the driver API that takes all the memory it is given: what it is shown, what it gets, how it is refused,
// and whether it still computes rightly afterwards. Told to its watcher (report.h). With CHECK_SHARED in the
// environment other programs take memory out of the same slice.
//
//   limit_driver [MOST [KERNELS]]    takes MOST bytes at the most, for a run without a limit (8 GiB); its kernel is in
//                                    the file KERNELS beside it (kernels.ptx)
#include <cstdlib>
#include <vector>

#include "lab/hardware/driver.h"
#include "lab/hardware/management.h"
#include "lab/hardware/report.h"
#include "lab/hardware/text.h"

using namespace cuslice::check;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr unsigned kElements = 1 << 20;
// Memory that a program keeps for its computation where others may take all else: twice what that takes, as the others'
// blocks may end in the middle of a chunk of the driver's.
constexpr uint64_t kToCompute = 2 * 2 * kElements * sizeof(float);

/// Large blocks first, then ever smaller ones, until even the smallest is refused.
CUresult take_all(std::vector<CUdeviceptr>& blocks, uint64_t most, uint64_t* got) {
    CUresult refused = CUDA_SUCCESS;
    for (uint64_t size = 64 * kMiB; size >= 256 << 10; size /= 4) {
        while (*got + size <= most) {
            CUdeviceptr block = 0;
            refused = CU(cuMemAlloc_v2)(&block, size);
            if (refused != CUDA_SUCCESS)
                break;
            blocks.push_back(block);
            *got += size;
        }
    }
    return refused;
}

/// Copies to and fro, and where kernels run: y += 3 x on a million elements, all compared.
std::string compute(const char* kernels) {
    std::vector<float> x(kElements), y(kElements), back(kElements);
    for (unsigned i = 0; i < kElements; i++) {
        x[i] = static_cast<float>(i % 1013);
        y[i] = static_cast<float>(i % 7);
    }
    CUdeviceptr xs = 0, ys = 0;
    MUST(cuMemAlloc_v2, &xs, kElements * sizeof(float));
    MUST(cuMemAlloc_v2, &ys, kElements * sizeof(float));
    MUST(cuMemcpyHtoD_v2, xs, x.data(), kElements * sizeof(float));
    MUST(cuMemcpyHtoD_v2, ys, y.data(), kElements * sizeof(float));
    const CUfunction saxpy = kernel(load_kernels(kernels), "saxpy");
    float factor = 3;
    unsigned count = kElements;
    void* arguments[] = {&xs, &ys, &factor, &count};
    MUST(cuLaunchKernel, saxpy, kElements / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr);
    MUST(cuCtxSynchronize);
    MUST(cuMemcpyDtoH_v2, back.data(), ys, kElements * sizeof(float));
    MUST(cuMemFree_v2, xs);
    MUST(cuMemFree_v2, ys);
    const float sign = kernels_are_skipped() ? 0 : factor;
    for (unsigned i = 0; i < kElements; i++)
        if (back[i] != y[i] + sign * x[i])
            return "wrong at element " + std::to_string(i);
    return kernels_are_skipped() ? "right (copies; no kernel was run)" : "right";
}

}  // namespace

int main(int argc, char** argv) {
    const uint64_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 8192 * kMiB;
    Gpu gpu = find_gpu();
    open_context(gpu);
    // A process that comes late would find no room for its context, nor for what it computes.
    std::vector<CUdeviceptr> blocks;
    uint64_t got = 0;
    const bool shared = std::getenv("CHECK_SHARED") != nullptr;
    if (shared) {
        blocks.push_back(0);
        MUST(cuMemAlloc_v2, &blocks.back(), kToCompute);
        got = kToCompute;
        ready();
    }
    size_t free = 0, total = 0, free_after = 0;
    MUST(cuMemGetInfo_v2, &free, &total);
    tell("total", total);
    tell("free", free);

    const CUresult refused = take_all(blocks, most, &got);
    tell("got", got);
    tell("refused", refused == CUDA_SUCCESS ? "not refused" : name_of(refused));
    if (const auto counted = counted_bytes(gpu.uuid))
        tell("counted", *counted);
    held();

    for (CUdeviceptr block : blocks)
        MUST(cuMemFree_v2, block);
    MUST(cuMemGetInfo_v2, &free_after, &total);
    std::string result = compute(argc > 2 ? argv[2] : "kernels.ptx");
    // A refused program had a slice of its own, which has to be whole again; without one, others may have taken
    // memory.
    if (refused != CUDA_SUCCESS && !shared && free_after + 4 * kMiB < free)
        result = "wrong: " + mib(free - free_after) + " were not given back";
    tell("result", result);
    return result.rfind("right", 0) == 0 ? 0 : 1;
}
