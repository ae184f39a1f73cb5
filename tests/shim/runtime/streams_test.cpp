// SPDX-License-Identifier: Apache-2.0
// Streams without a priority, on parts that have one and on parts that have none.
#include "shim/runtime/streams.h"

#include "tests/catch.h"
#include "tests/shim/runtime/made_up_runtime.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

cudaError_t first_gpu(int* device) {
    made_up().note("cudaGetDevice");
    *device = 0;
    return made_up().runtime_says;
}

}  // namespace

TEST_CASE("a stream that is made without a priority has the part's, if it has one") {
    MadeUpRuntime runtime;
    RECORD_NEEDED(cudaStreamCreateWithPriority, cudaStreamCreateWithPriority);
    runtime.priorities = {{1, -1}, {2, 0}};
    cudaStream_t stream = nullptr;
    runtime.current = 1;
    CHECK(ASK(cudaStreamCreate, &stream) == "cudaStreamCreateWithPriority * 0 -1");
    CHECK(ASK(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking) == "cudaStreamCreateWithPriority * 1 -1");
    CHECK(ASK_12(cudaStreamCreate, &stream) == "cudaStreamCreateWithPriority * 0 -1");
    CHECK(ASK_12(cudaStreamCreateWithFlags, &stream, 1u) == "cudaStreamCreateWithPriority * 1 -1");
    runtime.runtime_says = cudaErrorMemoryAllocation;
    ASK(cudaStreamCreate, &stream);
    CHECK(runtime.result == cudaErrorMemoryAllocation);
    runtime.runtime_says = cudaSuccess;
    runtime.current = 2;
    CHECK(ASK(cudaStreamCreateWithFlags, &stream, 0u) == "cudaStreamCreateWithPriority * 0 0");
    runtime.current = 3;
    CHECK(ASK(cudaStreamCreate, &stream) == "cudaStreamCreate *");
    CHECK(ASK(cudaStreamCreateWithFlags, &stream, 1u) == "cudaStreamCreateWithFlags * 1");
    runtime.split = false;
    CHECK(ASK(cudaStreamCreate, &stream) == "cudaStreamCreate *");
    CHECK(ASK(cudaStreamCreateWithFlags, &stream, 1u) == "cudaStreamCreateWithFlags * 1");
}

TEST_CASE("a thread without a context makes its stream on the part that it would begin with") {
    MadeUpRuntime runtime;
    RECORD_NEEDED(cudaStreamCreateWithPriority, cudaStreamCreateWithPriority);
    runtime.put(runtime::Id::cudaGetDevice, &first_gpu);
    runtime.priorities = {{0, -2}};
    cudaStream_t stream = nullptr;
    CHECK(ASK(cudaStreamCreate, &stream) == "cudaGetDevice; cudaStreamCreateWithPriority * 0 -2");
    runtime.runtime_says = cudaErrorNoDevice;
    CHECK(ASK(cudaStreamCreate, &stream) == "cudaGetDevice; cudaStreamCreate *");
    CHECK(runtime.result == cudaErrorNoDevice);
}
