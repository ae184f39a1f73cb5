// SPDX-License-Identifier: Apache-2.0
// Uses of a context that programs count by cuCtxAttach and cuCtxDetach: it ends with the last.
#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

TEST_CASE("a context that is attached to ends with its last use, and what is in it with it") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    const uint64_t before = Within::used(0);
    CUcontext context = nullptr, same = nullptr;
    REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    Within::allocate(64 << 20);
    const uint64_t with = Within::used(0);
    CHECK(with >= before + (64 << 20));
    REQUIRE(cuCtxAttach(&same, 0) == CUDA_SUCCESS);
    CHECK(same == context);
    CHECK(cuCtxDetach(context) == CUDA_SUCCESS);
    CHECK(Within::used(0) == with);
    // Refused, it is no use less.
    REQUIRE(cuCtxAttach(&same, 0) == CUDA_SUCCESS);
    CHECK(cuCtxAttach(&same, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuCtxDetach(context) == CUDA_SUCCESS);
    CHECK(Within::used(0) == with);
    CHECK(cuCtxDetach(context) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before);
}
