// SPDX-License-Identifier: Apache-2.0
// Captures and the ends of their streams.
#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

CUresult CUDAAPI refuse(CUstream) { return CUDA_ERROR_INVALID_VALUE; }

bool any_capture() { return process().caches().captures().any(); }

}  // namespace

TEST_CASE("a stream's end ends its capture, and a refused one doesn't") {
    const Within within(kCached);
    if (!within)
        return;
    Within::use(0);
    Within::allocate(4096);  // there is a cache from now on
    CUstream stream = nullptr;
    REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK_FALSE(any_capture());
    REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    CHECK(any_capture());
    {
        const Instead first(Function::cuStreamDestroy, refuse), second(Function::cuStreamDestroy_v2, refuse);
        CHECK(::cuStreamDestroy(stream) == CUDA_ERROR_INVALID_VALUE);
        CHECK(any_capture());
        CHECK(cuStreamDestroy_v2(stream) == CUDA_ERROR_INVALID_VALUE);
        CHECK(any_capture());
    }
    CHECK(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
    CHECK_FALSE(any_capture());
}
