// SPDX-License-Identifier: Apache-2.0
// Copies between virtual GPUs: those of one physical GPU are copies within its memory.
#include <tuple>

#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr auto kDevice = CU_MEM_LOCATION_TYPE_DEVICE;
const CUstream kStream = stream(7);

/// Last copy that the driver was asked for.
struct Asked {
    Function function = Function::cuInit;
    CUdeviceptr to = 0, from = 0;
    CUcontext to_context = nullptr, from_context = nullptr;
    size_t bytes = 0;
    CUstream on = nullptr;
};
Asked asked;
unsigned calls = 0;
CUDA_MEMCPY3D within{};
CUDA_MEMCPY3D_PEER between{};
std::vector<CUmemcpyAttributes> hints;
std::vector<CUDA_MEMCPY3D_BATCH_OP> boxes;

auto numbers_of(const auto& box) {
    return std::tuple(box.srcXInBytes, box.srcY, box.srcZ, box.srcLOD, box.srcMemoryType, box.srcHost, box.srcDevice,
                      box.srcArray, box.srcPitch, box.srcHeight, box.dstXInBytes, box.dstY, box.dstZ, box.dstLOD,
                      box.dstMemoryType, box.dstHost, box.dstDevice, box.dstArray, box.dstPitch, box.dstHeight,
                      box.WidthInBytes, box.Height, box.Depth);
}

template <Function kFunction>
CUresult copy_within(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    calls++;
    asked = {kFunction, to, from, nullptr, nullptr, bytes, nullptr};
    return CUDA_SUCCESS;
}
template <Function kFunction>
CUresult copy_within_on(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
    copy_within<kFunction>(to, from, bytes);
    asked.on = on;
    return CUDA_SUCCESS;
}
template <Function kFunction>
CUresult copy_between(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
    calls++;
    asked = {kFunction, to, from, to_context, from_context, bytes, nullptr};
    return CUDA_SUCCESS;
}
template <Function kFunction>
CUresult copy_between_on(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                         CUstream on) {
    copy_between<kFunction>(to, to_context, from, from_context, bytes);
    asked.on = on;
    return CUDA_SUCCESS;
}
template <Function kFunction>
CUresult box_within(const CUDA_MEMCPY3D* box) {
    calls++;
    asked = {};
    asked.function = kFunction;
    within = *box;
    return CUDA_SUCCESS;
}
template <Function kFunction>
CUresult box_within_on(const CUDA_MEMCPY3D* box, CUstream on) {
    box_within<kFunction>(box);
    asked.on = on;
    return CUDA_SUCCESS;
}
template <Function kFunction>
CUresult box_between(const CUDA_MEMCPY3D_PEER* box) {
    calls++;
    asked = {};
    asked.function = kFunction;
    if (!box)
        return CUDA_ERROR_INVALID_VALUE;
    between = *box;
    return CUDA_SUCCESS;
}
template <Function kFunction>
CUresult box_between_on(const CUDA_MEMCPY3D_PEER* box, CUstream on) {
    const CUresult result = box_between<kFunction>(box);
    asked.on = on;
    return result;
}

struct Scene : SplitScene {
    Scene() : first(create(0)), second(create(1)), beside(create(2)), ended(create(2)) {
        REQUIRE(split_driver::cuCtxDestroy_v2(ended) == CUDA_SUCCESS);
        calls = 0;
        using enum Function;
        driver.put(cuMemcpyPeer, copy_between<cuMemcpyPeer>);
        driver.put(cuMemcpyPeer_ptds, copy_between<cuMemcpyPeer_ptds>);
        driver.put(cuMemcpyPeerAsync, copy_between_on<cuMemcpyPeerAsync>);
        driver.put(cuMemcpyPeerAsync_ptsz, copy_between_on<cuMemcpyPeerAsync_ptsz>);
        driver.put(cuMemcpyDtoD_v2, copy_within<cuMemcpyDtoD_v2>);
        driver.put(cuMemcpyDtoD_v2_ptds, copy_within<cuMemcpyDtoD_v2_ptds>);
        driver.put(cuMemcpyDtoDAsync_v2, copy_within_on<cuMemcpyDtoDAsync_v2>);
        driver.put(cuMemcpyDtoDAsync_v2_ptsz, copy_within_on<cuMemcpyDtoDAsync_v2_ptsz>);
        driver.put(cuMemcpy3DPeer, box_between<cuMemcpy3DPeer>);
        driver.put(cuMemcpy3DPeer_ptds, box_between<cuMemcpy3DPeer_ptds>);
        driver.put(cuMemcpy3DPeerAsync, box_between_on<cuMemcpy3DPeerAsync>);
        driver.put(cuMemcpy3DPeerAsync_ptsz, box_between_on<cuMemcpy3DPeerAsync_ptsz>);
        driver.put(cuMemcpy3D_v2, box_within<cuMemcpy3D_v2>);
        driver.put(cuMemcpy3D_v2_ptds, box_within<cuMemcpy3D_v2_ptds>);
        driver.put(cuMemcpy3DAsync_v2, box_within_on<cuMemcpy3DAsync_v2>);
        driver.put(cuMemcpy3DAsync_v2_ptsz, box_within_on<cuMemcpy3DAsync_v2_ptsz>);
        driver.put(
            cuMemcpyBatchAsync_v2,
            +[](CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes* how, size_t*, size_t count,
                CUstream) -> CUresult {
                calls++;
                hints.assign(how, how + count);
                return CUDA_SUCCESS;
            });
        driver.put(
            cuMemcpy3DBatchAsync_v2,
            +[](size_t count, CUDA_MEMCPY3D_BATCH_OP* all, unsigned long long, CUstream) -> CUresult {
                calls++;
                boxes.assign(all, all + count);
                return CUDA_SUCCESS;
            });
    }
    CUcontext first, second, beside, ended;
};

}  // namespace

TEST_CASE("a copy between parts of a GPU is one in its memory, and between GPUs one between their real contexts") {
    Scene scene;
    using enum Function;
    const auto check = [&](auto copy, Function inner, Function outer, CUstream on) {
        REQUIRE(copy(scene.first, scene.second) == CUDA_SUCCESS);
        CHECK(asked.function == inner);
        CHECK(asked.to == 11);
        CHECK(asked.from == 22);
        CHECK(asked.bytes == 33);
        CHECK(asked.on == on);
        REQUIRE(copy(scene.second, scene.beside) == CUDA_SUCCESS);
        CHECK(asked.function == outer);
        CHECK(asked.to == 11);
        CHECK(asked.to_context == real_of(0));
        CHECK(asked.from == 22);
        CHECK(asked.from_context == real_of(1));
        CHECK(asked.bytes == 33);
        CHECK(asked.on == on);
        // None is the driver's to answer for.
        REQUIRE(copy(nullptr, nullptr) == CUDA_SUCCESS);
        CHECK(asked.function == outer);
        CHECK(asked.to_context == nullptr);
        calls = 0;
        CHECK(copy(scene.first, scene.ended) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(copy(scene.ended, scene.first) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(calls == 0);
    };
    namespace split = split_driver;
    check([](CUcontext to, CUcontext from) { return split::cuMemcpyPeer(11, to, 22, from, 33); }, cuMemcpyDtoD_v2,
          cuMemcpyPeer, nullptr);
    check([](CUcontext to, CUcontext from) { return split::cuMemcpyPeer_ptds(11, to, 22, from, 33); },
          cuMemcpyDtoD_v2_ptds, cuMemcpyPeer_ptds, nullptr);
    check([](CUcontext to, CUcontext from) { return split::cuMemcpyPeerAsync(11, to, 22, from, 33, kStream); },
          cuMemcpyDtoDAsync_v2, cuMemcpyPeerAsync, kStream);
    check([](CUcontext to, CUcontext from) { return split::cuMemcpyPeerAsync_ptsz(11, to, 22, from, 33, kStream); },
          cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyPeerAsync_ptsz, kStream);
}

TEST_CASE("a box that is copied between parts of a GPU is the same box within it, in every number") {
    Scene scene;
    using enum Function;
    CUDA_MEMCPY3D_PEER box{};
    box.srcXInBytes = 1, box.srcY = 2, box.srcZ = 3, box.srcLOD = 4, box.srcMemoryType = CU_MEMORYTYPE_HOST;
    box.srcHost = handle<void*>(5), box.srcDevice = 6, box.srcArray = handle<CUarray>(7);
    box.srcPitch = 8, box.srcHeight = 9;
    box.dstXInBytes = 11, box.dstY = 12, box.dstZ = 13, box.dstLOD = 14, box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box.dstHost = handle<void*>(15), box.dstDevice = 16, box.dstArray = handle<CUarray>(17);
    box.dstPitch = 18, box.dstHeight = 19;
    box.WidthInBytes = 20, box.Height = 21, box.Depth = 22;
    const auto check = [&](auto copy, Function inner, Function outer, CUstream on) {
        box.dstContext = scene.first, box.srcContext = scene.second;
        within = {};
        REQUIRE(copy(&box) == CUDA_SUCCESS);
        CHECK(asked.function == inner);
        CHECK(asked.on == on);
        CHECK(numbers_of(within) == numbers_of(box));
        box.srcContext = scene.beside;
        REQUIRE(copy(&box) == CUDA_SUCCESS);
        CHECK(asked.function == outer);
        CHECK(asked.on == on);
        CHECK(between.dstContext == real_of(0));
        CHECK(between.srcContext == real_of(1));
        CHECK(between.Depth == 22);
        CHECK(box.dstContext == scene.first);
        box.dstContext = box.srcContext = nullptr;
        REQUIRE(copy(&box) == CUDA_SUCCESS);
        CHECK(asked.function == outer);
        CHECK(copy(nullptr) == CUDA_ERROR_INVALID_VALUE);
        CHECK(asked.function == outer);
        calls = 0;
        box.dstContext = scene.ended;
        CHECK(copy(&box) == CUDA_ERROR_INVALID_CONTEXT);
        box.dstContext = scene.first, box.srcContext = scene.ended;
        CHECK(copy(&box) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(calls == 0);
    };
    using Box = const CUDA_MEMCPY3D_PEER*;
    check([](Box one) { return split_driver::cuMemcpy3DPeer(one); }, cuMemcpy3D_v2, cuMemcpy3DPeer, nullptr);
    check([](Box one) { return split_driver::cuMemcpy3DPeer_ptds(one); }, cuMemcpy3D_v2_ptds, cuMemcpy3DPeer_ptds,
          nullptr);
    check([](Box one) { return split_driver::cuMemcpy3DPeerAsync(one, kStream); }, cuMemcpy3DAsync_v2,
          cuMemcpy3DPeerAsync, kStream);
    check([](Box one) { return split_driver::cuMemcpy3DPeerAsync_ptsz(one, kStream); }, cuMemcpy3DAsync_v2_ptsz,
          cuMemcpy3DPeerAsync_ptsz, kStream);
}

TEST_CASE("a batch of copies hints at physical GPUs, and the program's hints are as they were") {
    Scene scene;
    std::vector<CUmemcpyAttributes> how(2);
    how[0].srcLocHint = {kDevice, 1};
    how[0].dstLocHint = {kDevice, 2};
    how[1].srcLocHint = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 2};
    how[1].dstLocHint = {kDevice, 1};
    const auto copy = [&] {
        return split_driver::cuMemcpyBatchAsync_v2(nullptr, nullptr, nullptr, 0, how.data(), nullptr, how.size(),
                                                   kStream);
    };
    REQUIRE(copy() == CUDA_SUCCESS);
    REQUIRE(hints.size() == 2);
    CHECK(hints[0].srcLocHint.id == 0);
    CHECK(hints[0].dstLocHint.id == 1);
    CHECK(hints[1].srcLocHint.id == 2);
    CHECK(hints[1].dstLocHint.id == 0);
    CHECK(how[0].dstLocHint.id == 2);
    calls = 0;
    const NoMemory none;
    CHECK(copy() == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(calls == 0);
}

TEST_CASE("a batch of boxes says where its pointers are, and an array needs no such hint") {
    Scene scene;
    std::vector<CUDA_MEMCPY3D_BATCH_OP> wished(2);
    wished[0].src.type = wished[0].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    wished[0].src.op.ptr.locHint = {kDevice, 1};
    wished[0].dst.op.ptr.locHint = {kDevice, 2};
    // An array has other bytes where a pointer has its hint: they stay as they are.
    wished[1].src.op.ptr.locHint = wished[1].dst.op.ptr.locHint = {kDevice, 2};
    wished[1].src.type = wished[1].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    REQUIRE(split_driver::cuMemcpy3DBatchAsync_v2(2, wished.data(), 0, kStream) == CUDA_SUCCESS);
    REQUIRE(boxes.size() == 2);
    CHECK(boxes[0].src.op.ptr.locHint.id == 0);
    CHECK(boxes[0].dst.op.ptr.locHint.id == 1);
    CHECK(boxes[1].src.op.ptr.locHint.id == 2);
    CHECK(boxes[1].dst.op.ptr.locHint.id == 2);
    CHECK(wished[0].dst.op.ptr.locHint.id == 2);
}
