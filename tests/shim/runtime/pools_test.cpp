// SPDX-License-Identifier: Apache-2.0
// Memory pools of parts, asked for through the runtime: the driver shim has them.
#include "shim/runtime/pools.h"

#include <vector>

#include "tests/catch.h"
#include "tests/shim/runtime/made_up_runtime.h"

using namespace cuslice;
using namespace cuslice::tests;

TEST_CASE("a part's pools are the driver shim's, once the runtime knows its GPU") {
    MadeUpRuntime runtime;
    cudaMemPool_t pool = nullptr;
    CHECK(ASK(cudaDeviceGetDefaultMemPool, &pool, 3) == "cudaDeviceGetDefaultMemPool * 1; cuDeviceGetDefaultMemPool 3");
    CHECK(ASK(cudaDeviceGetMemPool, &pool, 3) == "cudaDeviceGetMemPool * 1; cuDeviceGetMemPool 3");
    CHECK(ASK(cudaDeviceSetMemPool, 3, nullptr) == "cuDeviceSetMemPool 3 0");
    CHECK(ASK(cudaDeviceSetMemPool, 0, nullptr) == "cuDeviceSetMemPool 0 0");
    runtime.driver_says = CUDA_ERROR_INVALID_DEVICE;
    ASK(cudaDeviceGetDefaultMemPool, &pool, 3);
    CHECK(runtime.result == cudaErrorInvalidDevice);
    ASK(cudaDeviceGetMemPool, &pool, 3);
    CHECK(runtime.result == cudaErrorInvalidDevice);
    ASK(cudaDeviceSetMemPool, 3, nullptr);
    CHECK(runtime.result == cudaErrorInvalidDevice);
}

TEST_CASE("pools of a GPU that isn't there are refused by the runtime") {
    MadeUpRuntime runtime;
    cudaMemPool_t pool = nullptr;
    runtime.runtime_says = cudaErrorInvalidDevice;
    CHECK(ASK(cudaDeviceGetDefaultMemPool, &pool, 4) == "cudaDeviceGetDefaultMemPool * -2");
    CHECK(runtime.result == cudaErrorInvalidDevice);
    CHECK(ASK(cudaDeviceGetMemPool, &pool, 4) == "cudaDeviceGetMemPool * -2");
    CHECK(runtime.result == cudaErrorInvalidDevice);
    CHECK(ASK(cudaDeviceSetMemPool, 4, nullptr) == "cudaDeviceSetMemPool -2 0");
    CHECK(runtime.result == cudaErrorInvalidDevice);
}

TEST_CASE("pools that a program makes, and who may use them, are the driver shim's") {
    MadeUpRuntime runtime;
    cudaMemPool_t pool = nullptr;
    cudaMemPoolProps wish{};
    wish.location = on_gpu(3);
    cudaMemAccessDesc access{};
    access.location = on_gpu(2);
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    cudaMemLocation place = on_gpu(1);
    const auto type = cudaMemAllocationTypePinned;
    const std::string pinned = std::to_string(CU_MEM_ALLOCATION_TYPE_PINNED);
    const auto all = [&] {
        return std::vector<std::string>{
            ASK(cudaMemPoolCreate, &pool, &wish),
            ASK(cudaMemPoolSetAccess, pool, &access, size_t{1}),
            ASK(cudaMemPoolGetAccess, &flags, pool, &place),
            ASK(cudaMemGetDefaultMemPool, &pool, &place, type),
            ASK(cudaMemGetMemPool, &pool, &place, type),
            ASK(cudaMemSetMemPool, &place, type, pool),
        };
    };
    CHECK(all() == std::vector<std::string>{"cuMemPoolCreate * 3", "cuMemPoolSetAccess 0 2 1",
                                            "cuMemPoolGetAccess * 0 1", "cuMemGetDefaultMemPool * 1 " + pinned,
                                            "cuMemGetMemPool * 1 " + pinned, "cuMemSetMemPool 1 " + pinned + " 0"});
    CHECK(runtime.result == cudaSuccess);
    runtime.driver_says = CUDA_ERROR_INVALID_VALUE;
    const cudaError_t results[] = {
        (ASK(cudaMemPoolCreate, &pool, &wish), runtime.result),
        (ASK(cudaMemPoolSetAccess, pool, &access, size_t{1}), runtime.result),
        (ASK(cudaMemPoolGetAccess, &flags, pool, &place), runtime.result),
        (ASK(cudaMemGetDefaultMemPool, &pool, &place, type), runtime.result),
        (ASK(cudaMemGetMemPool, &pool, &place, type), runtime.result),
        (ASK(cudaMemSetMemPool, &place, type, pool), runtime.result),
    };
    for (const cudaError_t result : results)
        CHECK(result == cudaErrorInvalidValue);
    // A wish that is none is the runtime's to refuse.
    CHECK(ASK(cudaMemPoolCreate, &pool, nullptr) == "cudaMemPoolCreate * 0");
    runtime.split = false;
    CHECK(all() ==
          std::vector<std::string>{"cudaMemPoolCreate * *", "cudaMemPoolSetAccess 0 * 1",
                                   "cudaMemPoolGetAccess * 0 gpu1", "cudaMemGetDefaultMemPool * gpu1 " + pinned,
                                   "cudaMemGetMemPool * gpu1 " + pinned, "cudaMemSetMemPool gpu1 " + pinned + " 0"});
    CHECK(ASK(cudaDeviceSetMemPool, 3, nullptr) == "cudaDeviceSetMemPool 3 0");
    CHECK(ASK(cudaDeviceGetMemPool, &pool, 3) == "cudaDeviceGetMemPool * 3");
    CHECK(ASK(cudaDeviceGetDefaultMemPool, &pool, 3) == "cudaDeviceGetDefaultMemPool * 3");
}
