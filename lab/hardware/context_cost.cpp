// SPDX-License-Identifier: Apache-2.0
// Measures what the driver takes by itself and what an allocation really costs, step by step: NVML's figure for this
// process, and under cuslice what is counted, to the byte. One row of Markdown a step.
#include <cstdint>

#include "lab/hardware/driver.h"
#include "lab/hardware/rows.h"

using namespace cuslice::check;

namespace {

CUresult launch(CUfunction function) {
    const CUresult result = CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    return result == CUDA_SUCCESS ? CU(cuCtxSynchronize)() : result;
}

}  // namespace

int main() {
    Gpu gpu = find_gpu();
    Rows steps(gpu);
    steps.row("cuInit");
    open_context(gpu);
    steps.row("the primary context");
    const CUmodule module = load_kernels("kernels.ptx");
    steps.row("a small module");
    const CUfunction nothing = kernel(module, "nothing");
    steps.attempt("the first launch", launch(nothing));
    steps.attempt("the first of a kernel with 512 B of local memory a thread", launch(kernel(module, "local512")));
    steps.attempt("with 4 KiB", launch(kernel(module, "local4096")));
    steps.attempt("a stack of 4 KiB a thread", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4 << 10));
    steps.attempt("a launch with it", launch(nothing));
    steps.attempt("a printf buffer of 32 MiB", CU(cuCtxSetLimit)(CU_LIMIT_PRINTF_FIFO_SIZE, size_t{32} << 20));
    CUdeviceptr block = 0;
    for (const uint64_t bytes : {1ull, 1ull << 20, (2ull << 20) + 1, (100ull << 20) + 1}) {
        steps.attempt("cuMemAlloc of " + std::to_string(bytes) + " B", CU(cuMemAlloc_v2)(&block, bytes));
    }
    steps.attempt("1,000 × cuMemAlloc of 1,000 B", [&] {
        CUresult result = CUDA_SUCCESS;
        for (int i = 0; i < 1000 && result == CUDA_SUCCESS; i++)
            result = CU(cuMemAlloc_v2)(&block, 1000);
        return result;
    }());
    steps.attempt("cuMemAllocAsync of 10 MiB", [&] {
        const CUresult result = CU(cuMemAllocAsync)(&block, 10 << 20, nullptr);
        return result == CUDA_SUCCESS ? CU(cuStreamSynchronize)(nullptr) : result;
    }());
    steps.attempt("freed, and the pool trimmed", [&] {
        CUmemoryPool pool = nullptr;
        CUresult result = CU(cuMemFreeAsync)(block, nullptr);
        if (result == CUDA_SUCCESS)
            result = CU(cuStreamSynchronize)(nullptr);
        if (result == CUDA_SUCCESS)
            result = CU(cuDeviceGetDefaultMemPool)(&pool, gpu.device);
        return result == CUDA_SUCCESS ? CU(cuMemPoolTrimTo)(pool, 0) : result;
    }());
    // An H200 takes 4 GiB for this: more than the slice has.
    steps.attempt("a stack of 17 KiB a thread", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 17 << 10));
    steps.attempt("a launch with it", launch(nothing));
    steps.attempt("a stack of 1 KiB a thread", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1 << 10));
    steps.attempt("a launch with it", launch(nothing));
    CUcontext second = nullptr;
    const auto create = [&] {
        return find("cuCtxCreate_v4") ? CU(cuCtxCreate_v4)(&second, nullptr, 0, gpu.device)
                                      : CU(cuCtxCreate_v2)(&second, 0, gpu.device);
    };
    steps.attempt("a second context", create());
    if (second)
        steps.attempt("which is destroyed", CU(cuCtxDestroy_v2)(second));
}
