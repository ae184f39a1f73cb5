// SPDX-License-Identifier: Apache-2.0
// Contexts: stack, primary ones, what they cost, what ends with them.

#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("without a current context everything that needs one says so") {
    CHECK(in_child(one_t4, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              CUdeviceptr pointer = 0;
              CUdevice device = 0;
              CUstream stream = nullptr;
              CUcontext context = reinterpret_cast<CUcontext>(1);
              EXPECT_EQUAL(cuCtxGetCurrent(&context), CUDA_SUCCESS);
              EXPECT(context == nullptr);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
          }) == "");
}

TEST_CASE("the stack of a thread is its own") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              CUcontext a = nullptr, b = nullptr, top = nullptr;
              CUdevice device = -1;
              EXPECT_EQUAL(cuCtxCreate(&a, nullptr, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxCreate(&b, nullptr, 0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxGetDevice(&device), CUDA_SUCCESS);
              EXPECT_EQUAL(device, 1);
              std::thread([&] {
                  CUcontext none = a;
                  EXPECT_EQUAL(cuCtxGetCurrent(&none), CUDA_SUCCESS);
                  EXPECT(none == nullptr);
                  EXPECT_EQUAL(cuCtxPushCurrent(a), CUDA_SUCCESS);
              }).join();
              EXPECT_EQUAL(cuCtxPopCurrent(&top), CUDA_SUCCESS);
              EXPECT(top == b);
              EXPECT_EQUAL(cuCtxGetDevice(&device), CUDA_SUCCESS);
              EXPECT_EQUAL(device, 0);
              EXPECT_EQUAL(cuCtxSetCurrent(b), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxPopCurrent(&top), CUDA_SUCCESS);
              EXPECT(top == b);
              EXPECT_EQUAL(cuCtxPopCurrent(&top), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuCtxDestroy(a), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuCtxPushCurrent(a), CUDA_ERROR_INVALID_CONTEXT);
          }) == "");
}

TEST_CASE("a context that another thread destroyed is known to be gone") {
    CHECK(in_child(one_t4, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              CUcontext context = nullptr;
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
              std::thread([&] { EXPECT_EQUAL(cuCtxDestroy(context), CUDA_SUCCESS); }).join();
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_CONTEXT_IS_DESTROYED);
              EXPECT_EQUAL(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("each context is charged, and what is in it goes with it") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              EXPECT_EQUAL(before, size_t{15843721216} - 104 * MiB);
              CUcontext context = nullptr;
              CUdeviceptr pointer = 0;
              CUstream stream = nullptr;
              CUevent event = nullptr;
              EXPECT_EQUAL(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before - 104 * MiB);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 10 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxDestroy(context), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("a context that doesn't fit is out of memory") {
    CHECK(in_child({{"CUSLICE_FAKE", "laptop-2g"}}, [](const Report& report) {
              use_device(report);
              CUdeviceptr pointer = 0;
              CUcontext context = nullptr;
              EXPECT_EQUAL(cuMemAlloc(&pointer, free_bytes() - 299 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxCreate(&context, nullptr, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(free_bytes(), 299 * MiB);
          }) == "");
}

TEST_CASE("the primary context is one, counted, and keeps its handle over a reset") {
    CHECK(in_child(one_t4, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              CUcontext first = nullptr, again = nullptr;
              unsigned flags = 77;
              int active = 77;
              EXPECT_EQUAL(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
              EXPECT_EQUAL(active, 0);
              EXPECT_EQUAL(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
              EXPECT_EQUAL(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&first, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
              EXPECT(first == again);
              EXPECT_EQUAL(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
              EXPECT_EQUAL(flags, unsigned{CU_CTX_SCHED_YIELD});
              EXPECT_EQUAL(active, 1);
              EXPECT_EQUAL(cuCtxSetCurrent(first), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemAlloc(&pointer, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&pointer, MiB), CUDA_ERROR_CONTEXT_IS_DESTROYED);
              EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
              EXPECT(first == again);
              EXPECT_EQUAL(free_bytes(), size_t{15843721216} - 104 * MiB);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("limits, flags and preferences are kept and checked") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              size_t value = 0;
              unsigned version = 0, flags = 0;
              int least = 1, greatest = 1;
              unsigned long long id = 0;
              EXPECT_EQUAL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
              EXPECT_EQUAL(value, size_t{4096});
              EXPECT_EQUAL(cuCtxGetLimit(&value, static_cast<CUlimit>(99)), CUDA_ERROR_UNSUPPORTED_LIMIT);
              EXPECT_EQUAL(cuCtxGetApiVersion(context, &version), CUDA_SUCCESS);
              EXPECT_EQUAL(version, 3020U);
              EXPECT_EQUAL(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
              EXPECT_EQUAL(least, 0);
              EXPECT_EQUAL(greatest, -5);
              EXPECT_EQUAL(cuCtxGetId(context, &id), CUDA_SUCCESS);
              EXPECT(id != 0);
              EXPECT_EQUAL(cuCtxSetFlags(0x10000), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuCtxSetFlags(CU_CTX_SCHED_SPIN), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxGetFlags(&flags), CUDA_SUCCESS);
              EXPECT_EQUAL(flags, unsigned{CU_CTX_SCHED_SPIN});
              EXPECT_EQUAL(cuCtxSetCacheConfig(static_cast<CUfunc_cache>(9)), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
