// SPDX-License-Identifier: Apache-2.0
// Allocating and freeing: sizes, capacity, what is refused.

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

#pragma push_macro("cuMemAlloc")
#pragma push_macro("cuMemFree")
#undef cuMemAlloc
#undef cuMemFree
// The oldest forms, which cuda.h declares for the driver's own use alone.
extern "C" CUresult cuMemAlloc(unsigned int* pointer, unsigned int bytes);
extern "C" CUresult cuMemFree(unsigned int pointer);
namespace oldest {
const auto allocate = &cuMemAlloc;
const auto free = &cuMemFree;
}  // namespace oldest
#pragma pop_macro("cuMemAlloc")
#pragma pop_macro("cuMemFree")

using namespace fake_test;

TEST_CASE("sizes are charged in steps of 512 bytes, and come back exactly") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              const std::vector<std::pair<size_t, size_t>> charged = {{1, 512},
                                                                      {511, 512},
                                                                      {512, 512},
                                                                      {513, 1024},
                                                                      {MiB, MiB},
                                                                      {MiB + 1, MiB + 512},
                                                                      {300 * MiB, 300 * MiB}};
              for (const auto& [asked, taken] : charged) {
                  CUdeviceptr pointer = 0;
                  EXPECT_EQUAL(cuMemAlloc(&pointer, asked), CUDA_SUCCESS);
                  EXPECT_EQUAL(before - free_bytes(), taken);
                  EXPECT_EQUAL(pointer % 512, CUdeviceptr{0});
                  EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
                  EXPECT_EQUAL(free_bytes(), before);
              }
          }) == "");
}

TEST_CASE("the last byte can be had, and not one more") {
    CHECK(in_child({{"CUSLICE_FAKE", "laptop-2g"}}, [](const Report& report) {
              use_device(report);
              CUdeviceptr all = 0, more = 0;
              EXPECT_EQUAL(cuMemAlloc(&all, free_bytes() + 1), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuMemAlloc(&all, ~size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuMemAlloc(&all, free_bytes()), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), size_t{0});
              EXPECT_EQUAL(cuMemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuMemFree(all), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&more, 1), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("frees of what isn't allocated are refused") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr pointer = 0;
              int host = 0;
              EXPECT_EQUAL(cuMemFree(0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 4096), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(pointer + 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFree(pointer + 512), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFree(pointer + 4096), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFree(reinterpret_cast<CUdeviceptr>(&host)), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("memory of another device's context can be freed from here") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              const CUcontext second = use_device(report, 1);
              CUdeviceptr pointer = 0;
              const size_t before = free_bytes();
              EXPECT_EQUAL(cuMemAlloc(&pointer, MiB), CUDA_SUCCESS);
              use_device(report, 0);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(second), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
          }) == "");
}

TEST_CASE("pitched memory has rows of whole 512 bytes") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUdeviceptr pointer = 0;
              size_t pitch = 0;
              EXPECT_EQUAL(cuMemAllocPitch(&pointer, &pitch, 700, 10, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(pitch, size_t{1024});
              EXPECT_EQUAL(before - free_bytes(), size_t{10240});
              EXPECT_EQUAL(cuMemAllocPitch(&pointer, &pitch, 700, 10, 3), CUDA_ERROR_INVALID_VALUE);
              EXPECT(cuMemAllocPitch(&pointer, &pitch, ~size_t{0} / 2, 1000, 4) != CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a pointer of the device can't be touched by the host") {
    const std::string failed = in_child(one_t4, [](const Report& report) {
        use_device(report);
        CUdeviceptr pointer = 0;
        EXPECT_EQUAL(cuMemAlloc(&pointer, 4096), CUDA_SUCCESS);
        *reinterpret_cast<volatile int*>(pointer) = 1;
        report.fail(__FILE__, __LINE__, "written");
    });
    CHECK(failed == "signal 11");
}

TEST_CASE("managed memory can be touched by both") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemAllocManaged(&pointer, 3 * MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 3 * MiB);
              auto* host = reinterpret_cast<unsigned*>(pointer);
              host[5] = 77;
              unsigned read = 0;
              EXPECT_EQUAL(cuMemcpyDtoH(&read, pointer + 20, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(read, 77U);
              EXPECT_EQUAL(cuMemsetD32(pointer, 5, 3 * MiB / 4), CUDA_SUCCESS);
              EXPECT_EQUAL(host[700000], 5U);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuMemAllocManaged(&pointer, MiB, 7), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("managed memory may be more than the GPU has, and gives way to memory that can lie nowhere else") {
    const Folder folder;
    const std::string file = folder.path() + "/gpus.toml";
    std::ofstream(file) << "[[gpu]]\nprofile = \"t4\"\nmemory = \"1GiB\"\n";
    CHECK(in_child({{"CUSLICE_FAKE", file}}, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUdeviceptr first = 0, second = 0, plain = 0, pooled = 0;
              EXPECT_EQUAL(cuMemAllocManaged(&first, 600 * MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 600 * MiB);
              // 1200 MiB on a GPU of 1024: it is full, and the rest is the host's.
              EXPECT_EQUAL(cuMemAllocManaged(&second, 600 * MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), 0U);
              for (const CUdeviceptr place : {first, second}) {
                  EXPECT_EQUAL(cuMemsetD8(place + 500 * MiB, 7, MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(int{*reinterpret_cast<unsigned char*>(place + 500 * MiB)}, 7);
              }
              EXPECT_EQUAL(cuMemAlloc(&plain, 300 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&pooled, 200 * MiB, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), 0U);
              CUdeviceptr more = 0;
              EXPECT_EQUAL(cuMemAlloc(&more, before - 499 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(free_bytes(), 0U);
              // Managed memory that had to leave the GPU comes back into the freed space.
              EXPECT_EQUAL(cuMemFree(first), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), 0U);
              EXPECT_EQUAL(cuMemFree(second), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 500 * MiB);
              EXPECT_EQUAL(cuMemFree(plain), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(pooled), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocManaged(&first, before, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(first), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("managed memory is bounded by the GPU's and the host's together") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              const size_t host =
                  static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
              CUdeviceptr pointer = 0;
              for (const size_t bytes : {before + host + MiB, ~size_t{0}, ~size_t{0} - 600, size_t{1} << 47}) {
                  EXPECT_EQUAL(cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
                  EXPECT_EQUAL(free_bytes(), before);
              }
          }) == "");
}

TEST_CASE("before Pascal, and where the GPU's memory is the host's, managed memory is as much as the GPU has") {
    const std::string gpu = GENERATE("laptop-2g", "gb10");
    CHECK(in_child({{"CUSLICE_FAKE", gpu}}, [](const Report& report) {
              use_device(report);
              size_t free = 0, total = 0;
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocManaged(&pointer, total + MiB, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuMemAllocManaged(&pointer, total, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
          }) == "");
}

TEST_CASE("the oldest forms have 32-bit pointers that work") {
    CHECK(in_child({{"CUSLICE_FAKE", "laptop-2g"}}, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              unsigned pointer = 0, again = 0;
              EXPECT_EQUAL(oldest::allocate(&pointer, 4096), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), size_t{4096});
              int written = 1234, read = 0;
              EXPECT_EQUAL(cuMemcpyHtoD(pointer + 100, &written, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(&read, pointer + 100, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(read, 1234);
              EXPECT_EQUAL(oldest::free(pointer), CUDA_SUCCESS);
              EXPECT_EQUAL(oldest::free(pointer), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(oldest::allocate(&again, 0xffffffffU), CUDA_ERROR_OUT_OF_MEMORY);
          }) == "");
}

TEST_CASE("a million blocks live at once, all different") {
    CHECK(in_child({{"CUSLICE_FAKE", "h200"}}, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              constexpr size_t count = 1000000;
              std::vector<CUdeviceptr> live(count);
              for (size_t i = 0; i < count; i++) {
                  if (cuMemAlloc(&live[i], 1 + i % 5000) != CUDA_SUCCESS)
                      report.fail(__FILE__, __LINE__, "refused");
              }
              EXPECT_EQUAL(std::set<CUdeviceptr>(live.begin(), live.end()).size(), count);
              size_t wrong = 0;
              for (size_t i = 0; i < count; i += 2)
                  wrong += cuMemFree(live[i]) != CUDA_SUCCESS;
              for (size_t i = 1; i < count; i += 2)
                  wrong += cuMemFree(live[i]) != CUDA_SUCCESS;
              EXPECT_EQUAL(wrong, size_t{0});
              EXPECT_EQUAL(free_bytes(), before);
          }) == "");
}

TEST_CASE("threads allocate and free at once without losing a byte") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              const size_t before = free_bytes();
              std::vector<std::thread> threads;
              for (int t = 0; t < 4; t++) {
                  threads.emplace_back([&, t] {
                      EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
                      std::vector<CUdeviceptr> mine(100);
                      for (int round = 0; round < 300; round++) {
                          for (size_t i = 0; i < mine.size(); i++)
                              EXPECT_EQUAL(cuMemAlloc(&mine[i], 1 + 997 * i * static_cast<size_t>(t + 1)),
                                           CUDA_SUCCESS);
                          for (const CUdeviceptr pointer : mine)
                              EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
                      }
                  });
              }
              for (std::thread& thread : threads)
                  thread.join();
              EXPECT_EQUAL(free_bytes(), before);
          }) == "");
}

TEST_CASE("hints about managed memory are checked") {
    CHECK(in_child({{"CUSLICE_FAKE", "t4,laptop-2g"}}, [](const Report& report) {
              use_device(report);
              CUdeviceptr managed = 0, plain = 0;
              const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, old = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
              EXPECT_EQUAL(cuMemAllocManaged(&managed, MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&plain, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPrefetchAsync(managed, MiB, here, 0, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPrefetchAsync(managed, MiB + 1, here, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemPrefetchAsync(managed, MiB, old, 0, nullptr), CUDA_ERROR_INVALID_DEVICE);
              EXPECT_EQUAL(cuMemPrefetchAsync(plain, MiB, here, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemAdvise(managed, MiB, CU_MEM_ADVISE_SET_READ_MOSTLY, old), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAdvise(managed, MiB, static_cast<CUmem_advise>(0), here), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
