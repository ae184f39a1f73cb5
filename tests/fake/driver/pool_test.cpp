// SPDX-License-Identifier: Apache-2.0
// Memory pools: what is charged is what the pool holds, not what was asked for.

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

cuuint64_t attribute(const Report& report, CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    EXPECT_EQUAL(cuMemPoolGetAttribute(pool, which, &value), CUDA_SUCCESS);
    return value;
}

std::atomic<bool> released{false};

void CUDA_CB hold_until_released(void*) {
    while (!released)
        std::this_thread::yield();
}

}  // namespace

TEST_CASE("a pool grows in chunks and keeps freed memory until a synchronisation", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUmemoryPool pool = nullptr;
              CUdeviceptr a = 0, b = 0;
              EXPECT_EQUAL(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&a, 1000, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 2 * MiB);
              EXPECT_EQUAL(attribute(report, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), cuuint64_t{1024});
              EXPECT_EQUAL(attribute(report, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), cuuint64_t{2 * MiB});
              EXPECT_EQUAL(cuMemAllocAsync(&b, 5 * MiB, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 6 * MiB);
              EXPECT_EQUAL(cuMemFreeAsync(a, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(b, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(b, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(before - free_bytes(), 6 * MiB);
              EXPECT_EQUAL(cuMemAllocAsync(&b, 4 * MiB, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 6 * MiB);  // out of what was kept
              EXPECT_EQUAL(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 4 * MiB);
              EXPECT_EQUAL(cuMemFree(b), CUDA_SUCCESS);  // the plain free takes it too
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(attribute(report, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), cuuint64_t{6 * MiB});
              cuuint64_t zero = 0;
              EXPECT_EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero), CUDA_SUCCESS);
              EXPECT_EQUAL(attribute(report, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), cuuint64_t{0});
              // H200, driver 580.159.04, 2026-11-27.
              cuuint64_t untouched = 99;
              const auto unknown = static_cast<CUmemPool_attribute>(9);
              EXPECT_EQUAL(cuMemPoolGetAttribute(pool, unknown, &untouched), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(untouched, cuuint64_t{99});
          }) == "");
}

// H200, driver 580.159.04, 2026-11-27.
TEST_CASE("no bytes in a stream's order are success and a null pointer, in a capture too") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUmemoryPool pool = nullptr;
              CUstream stream = nullptr;
              CUgraph graph = nullptr;
              size_t nodes = 9;
              CUdeviceptr plain = 1, a = 1, b = 1, captured = 1;
              EXPECT_EQUAL(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&plain, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemAllocAsync(&a, 0, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(a, CUdeviceptr{0});
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&b, 0, pool, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(b, CUdeviceptr{0});
              EXPECT_EQUAL(cuMemFreeAsync(0, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(nullptr, 0, stream), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&b, 0, nullptr, stream), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&captured, 0, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(captured, CUdeviceptr{0});
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&captured, 0, pool, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
              EXPECT_EQUAL(nodes, size_t{0});
              EXPECT_EQUAL(attribute(report, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), cuuint64_t{0});
              EXPECT_EQUAL(free_bytes(), before);
          }) == "");
}

TEST_CASE("the release threshold keeps memory over a synchronisation, a trim gives it back") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUmemoryPool pool = nullptr;
              CUdeviceptr a = 0;
              cuuint64_t threshold = 4 * MiB;
              EXPECT_EQUAL(cuDeviceGetMemPool(&pool, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&a, 10 * MiB, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(a, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 4 * MiB);
              EXPECT_EQUAL(cuMemPoolTrimTo(pool, 2 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 2 * MiB);
              EXPECT_EQUAL(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
          }) == "");
}

TEST_CASE("pools of the program: their limit, their end, the current one", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUmemPoolProps props{};
              props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
              props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
              props.maxSize = 4 * MiB;
              CUmemoryPool pool = nullptr, standard = nullptr, current = nullptr;
              CUdeviceptr a = 0, b = 0;
              EXPECT_EQUAL(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&a, 3 * MiB, pool, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&b, 2 * MiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&b, MiB, nullptr), CUDA_SUCCESS);
              CUmemoryPool owner = nullptr;
              EXPECT_EQUAL(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, b), CUDA_SUCCESS);
              EXPECT(owner == pool);
              EXPECT_EQUAL(cuMemPoolDestroy(pool), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&b, 512, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(before - free_bytes(), 4 * MiB);  // blocks are still out
              EXPECT_EQUAL(cuMemFreeAsync(a, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(b, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
              EXPECT(current == standard);
              EXPECT_EQUAL(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a free waits for its stream") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream stream = nullptr;
              CUmemoryPool pool = nullptr;
              CUdeviceptr a = 0;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&a, MiB, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(stream, hold_until_released, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(a, stream), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(attribute(report, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), cuuint64_t{MiB});
              released = true;
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(attribute(report, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), cuuint64_t{0});
          }) == "");
}

TEST_CASE("a reset of the device ends what its pools hold") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUdeviceptr a = 0;
              EXPECT_EQUAL(cuMemAllocAsync(&a, 10 * MiB, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              use_device(report);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a context that ends waits for the frees that are still in its streams") {
    CHECK(in_child(one_t4, [](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              CUcontext context = nullptr;
              CUstream stream = nullptr;
              CUdeviceptr a = 0;
              EXPECT_EQUAL(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&a, MiB, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(stream, hold_until_released, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
              std::thread releaser([] {
                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                  released = true;
              });
              EXPECT_EQUAL(cuCtxDestroy(context), CUDA_SUCCESS);
              releaser.join();
              use_device(report);
              EXPECT_EQUAL(free_bytes(), size_t{15843721216} - 104 * MiB);
          }) == "");
}
