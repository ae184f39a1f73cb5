// SPDX-License-Identifier: Apache-2.0
// Batches of copies, where something is cached.
#include <cstring>

#include "tests/catch.h"
#include "tests/shim/within.h"
#include "virtual_gpu/driver/table.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

CUDA_MEMCPY3D_BATCH_OP between(CUmemcpy3DOperandType from, CUmemcpy3DOperandType to, CUdeviceptr block) {
    CUDA_MEMCPY3D_BATCH_OP box;
    std::memset(&box, 0, sizeof box);
    box.src.type = from;
    box.dst.type = to;
    if (from == CU_MEMCPY_OPERAND_TYPE_POINTER)
        box.src.op.ptr.ptr = block;
    if (to == CU_MEMCPY_OPERAND_TYPE_POINTER)
        box.dst.op.ptr.ptr = block;
    box.extent = {1 << 20, 1, 1};
    return box;
}

}  // namespace

TEST_CASE("arrays in a batch of boxes are the driver's to look at, and memory is looked at before") {
    const Within within(kCached);
    if (!within)
        return;
    Within::use(0);
    const CUdeviceptr block = Within::allocate(1 << 10);
    constexpr auto pointer = CU_MEMCPY_OPERAND_TYPE_POINTER, array = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    CUDA_MEMCPY3D_BATCH_OP boxes[] = {between(array, array, 0), between(array, pointer, block),
                                      between(pointer, array, block)};
    const CUresult drivers = CUSLICE_REAL(cuMemcpy3DBatchAsync_v2)(1, boxes, 0, nullptr);
    REQUIRE(drivers != CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpy3DBatchAsync_v2(1, boxes, 0, nullptr) == drivers);
    CHECK(cuMemcpy3DBatchAsync_v2(1, boxes + 1, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpy3DBatchAsync_v2(1, boxes + 2, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpy3DBatchAsync_v2(3, boxes, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    size_t failed = 77;
    CHECK(cuMemcpy3DBatchAsync(3, boxes, &failed, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(failed == 1);
    CHECK(cuMemcpy3DBatchAsync(3, boxes, nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpy3DBatchAsync_v2(3, nullptr, 0, nullptr) == drivers);
}

TEST_CASE("a batch of copies that is none is the driver's to refuse") {
    const Within within(kCached);
    if (!within)
        return;
    Within::use(0);
    CUdeviceptr at[] = {Within::allocate(1 << 10), Within::allocate(1 << 10)};
    size_t bytes[] = {1 << 10, 1 << 20};
    const auto ours = [&](CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count) {
        return cuMemcpyBatchAsync_v2(to, from, sizes, count, nullptr, nullptr, 0, nullptr);
    };
    const CUresult drivers = CUSLICE_REAL(cuMemcpyBatchAsync_v2)(nullptr, at, bytes, 1, nullptr, nullptr, 0, nullptr);
    CHECK(ours(nullptr, at, bytes, 1) == drivers);
    CHECK(ours(at, nullptr, bytes, 1) == drivers);
    CHECK(ours(at, at, nullptr, 1) == drivers);
    CHECK(ours(at, at + 1, bytes + 1, 1) == CUDA_ERROR_INVALID_VALUE);
}
