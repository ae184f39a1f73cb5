// SPDX-License-Identifier: Apache-2.0
// Pools whose memory is not a device's own: page-locked memory of the host, and managed memory.

#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

constexpr auto kPinned = CU_MEM_ALLOCATION_TYPE_PINNED, kManaged = CU_MEM_ALLOCATION_TYPE_MANAGED;
constexpr CUmemLocation kNone = {CU_MEM_LOCATION_TYPE_NONE, 0}, kDevice = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                        kHost = {CU_MEM_LOCATION_TYPE_HOST, 0}, kNode = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
                        kCurrentNode = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};

CUmemPoolProps props_of(CUmemLocation location, CUmemAllocationType type) {
    CUmemPoolProps props{};
    props.allocType = type;
    props.location = location;
    return props;
}

CUresult create(CUmemoryPool& pool, CUmemLocation location, CUmemAllocationType type) {
    const CUmemPoolProps props = props_of(location, type);
    return cuMemPoolCreate(&pool, &props);
}

CUmemoryPool made(const Report& report, CUmemLocation location, CUmemAllocationType type) {
    CUmemoryPool pool = nullptr;
    EXPECT_EQUAL(create(pool, location, type), CUDA_SUCCESS);
    return pool;
}

template <typename T>
T about(CUdeviceptr address, CUpointer_attribute attribute) {
    T value{};
    return cuPointerGetAttribute(&value, attribute, address) == CUDA_SUCCESS ? value : T{};
}

cuuint64_t used(CUmemoryPool pool, CUmemPool_attribute which = CU_MEMPOOL_ATTR_USED_MEM_CURRENT) {
    cuuint64_t value = 99;
    return cuMemPoolGetAttribute(pool, which, &value) == CUDA_SUCCESS ? value : 99;
}

}  // namespace

// H200, driver 580.159.04, 2026-11-27: what succeeds, and what the memory is.
TEST_CASE("a pool of the host has page-locked memory, which no GPU pays for", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              for (const CUmemLocation& place : {kHost, kNode}) {
                  CUmemoryPool pool = made(report, place, kPinned), owner = nullptr;
                  CUdeviceptr block = 0, other = 0;
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&block, 5 * MiB, pool, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(about<unsigned>(block, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), unsigned{CU_MEMORYTYPE_HOST});
                  EXPECT(about<CUmemoryPool>(block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) == pool);
                  EXPECT_EQUAL(free_bytes(), before);
                  EXPECT_EQUAL(used(pool), cuuint64_t{5 * MiB});
                  EXPECT_EQUAL(cuMemsetD32(block, 7, 5 * MiB / 4), CUDA_SUCCESS);
                  EXPECT_EQUAL(reinterpret_cast<int*>(block)[MiB], 7);
                  EXPECT_EQUAL(cuMemFreeHost(reinterpret_cast<void*>(block)), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuMemHostRegister(reinterpret_cast<void*>(block), MiB, 0), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&other, MiB, pool, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemFreeAsync(block, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemFreeAsync(block, nullptr), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(used(pool), cuuint64_t{MiB});
                  EXPECT_EQUAL(cuMemPoolDestroy(pool), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemFree(other), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &owner),
                               CUDA_ERROR_INVALID_VALUE);
              }
          }) == "");
}

TEST_CASE("a pool of managed memory has managed memory, wherever it is to be", "[at once]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              for (const CUmemLocation& place : {kNone, kDevice, kHost, kNode}) {
                  const CUmemoryPool pool = made(report, place, kManaged);
                  CUdeviceptr block = 0, none = 1;
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&block, 5 * MiB, pool, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(int{about<unsigned char>(block, CU_POINTER_ATTRIBUTE_IS_MANAGED)}, 1);
                  EXPECT(about<CUmemoryPool>(block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) == pool);
                  EXPECT_EQUAL(before - free_bytes(), 5 * MiB);
                  EXPECT_EQUAL(used(pool), cuuint64_t{5 * MiB});
                  reinterpret_cast<int*>(block)[3] = 9;
                  int back = 0;
                  EXPECT_EQUAL(cuMemcpyDtoH(&back, block + 12, 4), CUDA_SUCCESS);
                  EXPECT_EQUAL(back, 9);
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&none, 0, pool, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(none, CUdeviceptr{0});
                  EXPECT_EQUAL(cuMemFreeAsync(block, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemFreeAsync(block, nullptr), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(free_bytes(), before);
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&block, MiB, pool, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemPoolDestroy(pool), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&none, MiB, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuMemFree(block), CUDA_SUCCESS);
                  EXPECT_EQUAL(free_bytes(), before);
                  EXPECT_EQUAL(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
              }
          }) == "");
}

TEST_CASE("a pool is refused where there is no such place, or no sharing of its memory") {
    std::string said;
    CHECK(in_child(
              {{"CUSLICE_FAKE", "t4,laptop-2g"}},
              [](const Report& report) {
                  use_device(report);
                  CUmemoryPool pool = nullptr;
                  const auto fails = [&](CUmemLocation place, CUmemAllocationType type) {
                      EXPECT_EQUAL(create(pool, place, type), CUDA_ERROR_INVALID_VALUE);
                      EXPECT_EQUAL(cuMemGetDefaultMemPool(&pool, &place, type), CUDA_ERROR_INVALID_VALUE);
                      EXPECT_EQUAL(cuMemGetMemPool(&pool, &place, type), CUDA_ERROR_INVALID_VALUE);
                  };
                  // The first: H200, driver 580.159.04, 2026-11-27. The others are documented.
                  fails(kCurrentNode, kPinned);
                  fails(kCurrentNode, kManaged);
                  fails(kNone, kPinned);
                  fails(kHost, CU_MEM_ALLOCATION_TYPE_INVALID);
                  fails({CU_MEM_LOCATION_TYPE_HOST_NUMA, 1}, kPinned);  // a machine has one node
                  EXPECT_EQUAL(create(pool, {CU_MEM_LOCATION_TYPE_DEVICE, 2}, kManaged), CUDA_ERROR_INVALID_DEVICE);
                  CUmemPoolProps shared = props_of(kHost, kPinned);
                  shared.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
                  EXPECT_EQUAL(cuMemPoolCreate(&pool, &shared), CUDA_ERROR_INVALID_VALUE);
                  shared.location = kNode;
                  EXPECT_EQUAL(cuMemPoolCreate(&pool, &shared), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(create(pool, {CU_MEM_LOCATION_TYPE_DEVICE, 1}, kManaged), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT(pool == nullptr);
                  // A capture takes a device's own memory alone.
                  CUstream stream = nullptr;
                  CUdeviceptr block = 0;
                  EXPECT_EQUAL(create(pool, kHost, kPinned), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAllocFromPoolAsync(&block, MiB, pool, stream), CUDA_ERROR_NOT_SUPPORTED);
              },
              &said) == "");
    CHECK(said ==
          "cuslice fake GPU: cuMemPoolCreate of host or managed memory that is exported is not supported\n"
          "cuslice fake GPU: cuMemPoolCreate of managed memory on a GPU before Pascal is not supported\n"
          "cuslice fake GPU: capturing an allocation from a pool of host or managed memory is not supported\n");
}

TEST_CASE("each place has a default pool for each kind of memory, and another one can stand for it") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              std::set<CUmemoryPool> all;
              CUmemoryPool pool = nullptr, again = nullptr;
              // H200, driver 580.159.04, 2026-11-27: all but managed memory without a place, which is documented.
              for (const auto type : {kPinned, kManaged}) {
                  for (CUmemLocation place : {kDevice, kHost, kNode, kNone}) {
                      if (type == kPinned && place.type == CU_MEM_LOCATION_TYPE_NONE)
                          continue;
                      EXPECT_EQUAL(cuMemGetDefaultMemPool(&pool, &place, type), CUDA_SUCCESS);
                      EXPECT(all.insert(pool).second);
                      EXPECT_EQUAL(cuMemGetMemPool(&again, &place, type), CUDA_SUCCESS);
                      EXPECT(again == pool);
                      EXPECT_EQUAL(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
                      const CUmemoryPool mine = made(report, place, type);
                      EXPECT_EQUAL(cuMemSetMemPool(&place, type, mine), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuMemGetMemPool(&again, &place, type), CUDA_SUCCESS);
                      EXPECT(again == mine);
                      EXPECT_EQUAL(cuMemPoolDestroy(mine), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuMemGetMemPool(&again, &place, type), CUDA_SUCCESS);
                      EXPECT(again == pool);
                  }
              }
              const CUmemoryPool managed = made(report, kDevice, kManaged);
              CUmemLocation place = kHost;
              EXPECT_EQUAL(cuMemSetMemPool(&place, kManaged, managed), CUDA_ERROR_INVALID_VALUE);
              place = kDevice;
              EXPECT_EQUAL(cuMemSetMemPool(&place, kPinned, managed), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDeviceSetMemPool(0, managed), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
              EXPECT(all.count(pool) == 1);
          }) == "");
}

TEST_CASE("a managed pool of a device ends with what the device's reset takes; one of the host stays") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              const CUmemoryPool managed = made(report, kDevice, kManaged), host = made(report, kHost, kPinned);
              CUdeviceptr a = 0, b = 0;
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&a, MiB, managed, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocFromPoolAsync(&b, MiB, host, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              use_device(report);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFree(b), CUDA_SUCCESS);
          }) == "");
}
