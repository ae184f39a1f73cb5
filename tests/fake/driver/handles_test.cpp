// SPDX-License-Identifier: Apache-2.0
// A handle that the driver did not make is refused, whatever it is, and nothing behind it is read.

#include <cstdint>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

template <typename T>
std::vector<T> wrong_handles(T good_of_another_kind) {
    static int something[64] = {};
    std::vector<T> all;
    for (const uint64_t bits : {uint64_t{3}, uint64_t{0x1000}, ~uint64_t{0}, uint64_t{0x7fff12345678},
                                reinterpret_cast<uint64_t>(something), uint64_t{0x0002000010000010}}) {
        all.push_back(reinterpret_cast<T>(bits));
    }
    all.push_back(good_of_another_kind);
    return all;
}

}  // namespace

TEST_CASE("every kind of handle is checked before anything is read") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              CUstream stream = nullptr;
              CUevent event = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
              for (const CUcontext bad : wrong_handles(reinterpret_cast<CUcontext>(stream))) {
                  unsigned version = 0;
                  EXPECT_EQUAL(cuCtxSetCurrent(bad), CUDA_ERROR_INVALID_CONTEXT);
                  EXPECT_EQUAL(cuCtxPushCurrent(bad), CUDA_ERROR_INVALID_CONTEXT);
                  EXPECT_EQUAL(cuCtxDestroy(bad), CUDA_ERROR_INVALID_CONTEXT);
                  EXPECT_EQUAL(cuCtxGetApiVersion(bad, &version), CUDA_ERROR_INVALID_CONTEXT);
                  EXPECT_EQUAL(cuCtxEnablePeerAccess(bad, 0), CUDA_ERROR_INVALID_CONTEXT);
              }
              for (const CUstream bad : wrong_handles(reinterpret_cast<CUstream>(event))) {
                  CUdeviceptr pointer = 0;
                  EXPECT_EQUAL(cuStreamQuery(bad), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuStreamSynchronize(bad), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuStreamDestroy(bad), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuMemAllocAsync(&pointer, 512, bad), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuEventRecord(event, bad), CUDA_ERROR_INVALID_HANDLE);
              }
              for (const CUevent bad : wrong_handles(reinterpret_cast<CUevent>(context))) {
                  float time = 0;
                  EXPECT_EQUAL(cuEventQuery(bad), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuEventRecord(bad, stream), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuEventElapsedTime(&time, bad, event), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuStreamWaitEvent(stream, bad, 0), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuEventDestroy(bad), CUDA_ERROR_INVALID_HANDLE);
              }
              for (const CUmodule bad : wrong_handles(reinterpret_cast<CUmodule>(context))) {
                  CUfunction function = nullptr;
                  EXPECT_EQUAL(cuModuleGetFunction(&function, bad, "f"), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuModuleUnload(bad), CUDA_ERROR_INVALID_HANDLE);
              }
              for (const CUfunction bad : wrong_handles(reinterpret_cast<CUfunction>(context))) {
                  int value = 0;
                  EXPECT_EQUAL(cuLaunchKernel(bad, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                               CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, bad), CUDA_ERROR_INVALID_HANDLE);
              }
              for (const CUmemoryPool bad : wrong_handles(reinterpret_cast<CUmemoryPool>(context))) {
                  EXPECT_EQUAL(cuMemPoolTrimTo(bad, 0), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuMemPoolDestroy(bad), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuDeviceSetMemPool(0, bad), CUDA_ERROR_INVALID_VALUE);
              }
              for (const CUlibrary bad : wrong_handles(reinterpret_cast<CUlibrary>(context))) {
                  EXPECT_EQUAL(cuLibraryUnload(bad), CUDA_ERROR_INVALID_HANDLE);
              }
              for (const CUarray bad : wrong_handles(reinterpret_cast<CUarray>(context))) {
                  EXPECT_EQUAL(cuArrayDestroy(bad), CUDA_ERROR_INVALID_HANDLE);
              }
              for (const CUgraphExec bad : wrong_handles(reinterpret_cast<CUgraphExec>(context))) {
                  EXPECT_EQUAL(cuGraphLaunch(bad, stream), CUDA_ERROR_INVALID_VALUE);
              }
              EXPECT_EQUAL(cuMemRelease(0x1234), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a handle that was used before is not taken for the one in its place") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream old = nullptr, fresh = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&old, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamDestroy(old), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&fresh, 0), CUDA_SUCCESS);
              EXPECT(old != fresh);
              EXPECT_EQUAL(cuStreamQuery(old), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuStreamQuery(fresh), CUDA_SUCCESS);
          }) == "");
}
