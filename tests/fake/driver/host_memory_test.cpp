// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdlib>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("page-locked memory is the host's and the device's, and charged to nobody") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              void* host = nullptr;
              CUdeviceptr device = 0, target = 0;
              unsigned flags = 0;
              EXPECT_EQUAL(cuMemHostAlloc(&host, 10000, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              static_cast<char*>(host)[9999] = 7;
              EXPECT_EQUAL(cuMemHostGetDevicePointer(&device, host, 0), CUDA_SUCCESS);
              EXPECT(device == reinterpret_cast<CUdeviceptr>(host));
              CUdeviceptr base = 0;
              size_t size = 0;
              EXPECT_EQUAL(cuMemGetAddressRange(&base, &size, device + 9999), CUDA_SUCCESS);
              EXPECT(base == device && size == 10000);
              EXPECT_EQUAL(cuMemGetAddressRange(&base, &size, device + 10000), CUDA_ERROR_NOT_FOUND);
              EXPECT_EQUAL(cuMemHostGetFlags(&flags, host), CUDA_SUCCESS);
              EXPECT((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0);
              EXPECT_EQUAL(cuMemAlloc(&target, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoD(target, device + 9999, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoD(target, device + 9999, 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemsetD8(device, 9, 10), CUDA_SUCCESS);
              EXPECT_EQUAL(int{static_cast<char*>(host)[9]}, 9);
              EXPECT_EQUAL(cuMemFree(device), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFreeHost(host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostAlloc(&host, 10, 0x100), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("memory of the program is registered once at a time") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              std::vector<char> mine(100000);
              CUdeviceptr device = 0;
              EXPECT_EQUAL(cuMemHostGetDevicePointer(&device, mine.data(), 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(mine.data(), 50000, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemHostRegister(mine.data() + 40000, 50000, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
              EXPECT_EQUAL(cuMemHostGetDevicePointer(&device, mine.data() + 100, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeHost(mine.data()), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostUnregister(mine.data() + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
              EXPECT_EQUAL(cuMemHostUnregister(mine.data()), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemHostUnregister(mine.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
              EXPECT_EQUAL(cuMemHostRegister(nullptr, 10, 0), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

// H200, driver 580.159.04, 2026-11-27.
TEST_CASE("only mapped memory of the program that nobody has locked can be registered") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              constexpr size_t page = 4096;
              std::vector<char> mine(100000);
              char* const memory = mine.data();
              void *locked = nullptr,
                   *hole = mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              CUdeviceptr device = 0;
              EXPECT(hole != MAP_FAILED);
              EXPECT_EQUAL(munmap(static_cast<char*>(hole) + 2 * page, page), 0);
              EXPECT_EQUAL(cuMemHostAlloc(&locked, 10 * page, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&device, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemHostRegister(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(memory, page, 0x100), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(memory, page, CU_MEMHOSTREGISTER_IOMEMORY), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(locked, page, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(static_cast<char*>(locked) + page, page, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(reinterpret_cast<void*>(device), page, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(hole, 4 * page, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostRegister(static_cast<char*>(hole) + 2 * page, page, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostUnregister(locked), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemHostUnregister(hole), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
              EXPECT_EQUAL(cuMemHostRegister(hole, 2 * page, CU_MEMHOSTREGISTER_READ_ONLY), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemHostRegister(memory + 7, 1001, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemHostUnregister(memory + 7), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeHost(locked), CUDA_SUCCESS);
          }) == "");
}
