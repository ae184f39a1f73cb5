// SPDX-License-Identifier: Apache-2.0
// Contents of memory after copies and fills, compared with a plain copy in host memory.

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

std::vector<unsigned char> random_bytes(std::mt19937& random, size_t size) {
    std::vector<unsigned char> bytes(size);
    for (auto& byte : bytes)
        byte = static_cast<unsigned char>(random());
    return bytes;
}

// Left out under tsan (always 0): its shadow is several times what the program touches, and counts as the program's.
size_t resident_kilobytes() {
#ifdef __SANITIZE_THREAD__
    return 0;
#endif
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<size_t>(usage.ru_maxrss);
}

}  // namespace

TEST_CASE("ten thousand random copies and fills leave what they would in plain memory", "[fuzz]") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              constexpr size_t size = 9 * MiB;  // some whole pages, and edges
              std::mt19937 random(4711);
              CUdeviceptr device[2];
              std::vector<unsigned char> model[2];
              for (int i = 0; i < 2; i++) {
                  EXPECT_EQUAL(cuMemAlloc(&device[i], size), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemsetD8(device[i], 0, size), CUDA_SUCCESS);
                  model[i].assign(size, 0);
              }
              for (int step = 0; step < 10000; step++) {
                  const int a = static_cast<int>(random() % 2);
                  // Mostly short ranges, sometimes nearly all of it.
                  const size_t length = random() % 40 == 0 ? random() % size : random() % 5000;
                  const size_t from = random() % (size - length + 1), to = random() % (size - length + 1);
                  switch (random() % 6) {
                      case 0: {
                          const auto bytes = random_bytes(random, std::min<size_t>(length, 100000));
                          EXPECT_EQUAL(cuMemcpyHtoD(device[a] + to, bytes.data(), bytes.size()), CUDA_SUCCESS);
                          std::copy(bytes.begin(), bytes.end(), model[a].begin() + static_cast<long>(to));
                          break;
                      }
                      case 1: {
                          std::vector<unsigned char> read(length + 1);
                          EXPECT_EQUAL(cuMemcpyDtoH(read.data(), device[a] + from, length), CUDA_SUCCESS);
                          EXPECT(std::equal(read.begin(), read.begin() + static_cast<long>(length),
                                            model[a].begin() + static_cast<long>(from)));
                          break;
                      }
                      case 2: {
                          EXPECT_EQUAL(cuMemcpyDtoD(device[a] + to, device[1 - a] + from, length), CUDA_SUCCESS);
                          std::copy_n(model[1 - a].begin() + static_cast<long>(from), length,
                                      model[a].begin() + static_cast<long>(to));
                          break;
                      }
                      case 3: {
                          const auto value = static_cast<unsigned char>(random());
                          EXPECT_EQUAL(cuMemsetD8(device[a] + to, value, length), CUDA_SUCCESS);
                          std::fill_n(model[a].begin() + static_cast<long>(to), length, value);
                          break;
                      }
                      case 4: {
                          const auto value = static_cast<unsigned short>(random());
                          const size_t even = to & ~size_t{1}, count = length / 2;
                          EXPECT_EQUAL(cuMemsetD16(device[a] + even, value, count), CUDA_SUCCESS);
                          for (size_t i = 0; i < count; i++)
                              std::memcpy(&model[a][even + 2 * i], &value, 2);
                          break;
                      }
                      default: {
                          const auto value = static_cast<unsigned>(random());
                          const size_t aligned = to & ~size_t{3}, count = length / 4;
                          EXPECT_EQUAL(cuMemsetD32(device[a] + aligned, value, count), CUDA_SUCCESS);
                          for (size_t i = 0; i < count; i++)
                              std::memcpy(&model[a][aligned + 4 * i], &value, 4);
                          break;
                      }
                  }
              }
              for (int i = 0; i < 2; i++) {
                  std::vector<unsigned char> read(size);
                  EXPECT_EQUAL(cuMemcpyDtoH(read.data(), device[i], size), CUDA_SUCCESS);
                  EXPECT(read == model[i]);
              }
          }) == "");
}

TEST_CASE("filling all of a large GPU takes no memory to speak of") {
    CHECK(in_child({{"CUSLICE_FAKE", "h200"}}, [](const Report& report) {
              use_device(report);
              const size_t size = free_bytes() >> 21 << 21, before = resident_kilobytes();
              CUdeviceptr all = 0;
              unsigned char byte = 0;
              EXPECT_EQUAL(cuMemAlloc(&all, size), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(all, 0xa5, size), CUDA_SUCCESS);
              for (const size_t at : {size_t{0}, size / 3, size - 1}) {
                  EXPECT_EQUAL(cuMemcpyDtoH(&byte, all + at, 1), CUDA_SUCCESS);
                  EXPECT_EQUAL(int{byte}, 0xa5);
              }
              EXPECT_EQUAL(cuMemcpyDtoD(all, all + size / 2, size / 2), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(all, 0, size), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(&byte, all + size / 2, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(int{byte}, 0);
              EXPECT(resident_kilobytes() - before < 32 * 1024);
          }) == "");
}

TEST_CASE("memory that was written is given back when it is freed") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const std::vector<unsigned char> bytes(64 * MiB, 1);
              const size_t before = resident_kilobytes();
              for (size_t i = 0; i < 16; i++) {
                  CUdeviceptr pointer = 0, spacer = 0;
                  EXPECT_EQUAL(cuMemAlloc(&spacer, MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAlloc(&pointer, bytes.size() + i * 16 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemcpyHtoD(pointer, bytes.data(), bytes.size()), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
              }
              EXPECT(resident_kilobytes() - before < 200 * 1024);
          }) == "");
}

TEST_CASE("copies and fills that leave their block are refused") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr a = 0, b = 0;
              std::vector<char> host(8192);
              EXPECT_EQUAL(cuMemAlloc(&a, 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&b, 4096), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyHtoD(a, host.data(), 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyHtoD(a, host.data(), 1001), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyHtoD(a + 999, host.data(), 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyHtoD(a - 1, host.data(), 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyDtoH(host.data(), a, ~size_t{0}), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyDtoD(a, b, 1001), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyDtoD(b, a, 1001), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemsetD8(a, 0, 1001), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemsetD32(a + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemsetD32(a, 0, ~size_t{0}), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyHtoD(a, nullptr, 16), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyHtoD(a, reinterpret_cast<void*>(b), 16), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host.data()), host.data() + 100, 16),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFree(b), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(host.data(), b, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemcpyHtoD(a, host.data(), 0), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a unified copy finds out by itself where things are") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              const CUcontext second = use_device(report, 1);
              CUdeviceptr far = 0, near = 0;
              EXPECT_EQUAL(cuMemAlloc(&far, 4096), CUDA_SUCCESS);
              const CUcontext first = use_device(report, 0);
              EXPECT_EQUAL(cuMemAlloc(&near, 4096), CUDA_SUCCESS);
              char in[16] = "from the host", out[16] = {};
              EXPECT_EQUAL(cuMemcpy(near, reinterpret_cast<CUdeviceptr>(in), 16), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpy(far, near, 16), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyPeer(near + 100, first, far, second, 16), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpy(reinterpret_cast<CUdeviceptr>(out), near + 100, 16), CUDA_SUCCESS);
              EXPECT_EQUAL(std::string(out), "from the host");
              EXPECT_EQUAL(cuMemcpyPeer(near, first, far, nullptr, 16), CUDA_ERROR_INVALID_CONTEXT);
          }) == "");
}

TEST_CASE("contents that the host has no room for are refused by name, and change nothing", "[at once]") {
    std::string said;
    const Environment small = {{"CUSLICE_FAKE", "2xt4"}, {"CUSLICE_FAKE_HOST", "64MiB"}};
    CHECK(in_child(
              small,
              [](const Report& report) {
                  use_device(report);
                  CUdeviceptr device = 0, managed = 0, copy = 0;
                  EXPECT_EQUAL(cuMemAlloc(&device, 4096 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAlloc(&copy, 4096 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAllocManaged(&managed, 1024 * MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
                  // A pattern takes nothing, nor does its copy.
                  EXPECT_EQUAL(cuMemsetD8(device, 7, 4096 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemcpyDtoD(copy, device, 4096 * MiB), CUDA_SUCCESS);
                  // Memory that the host can touch needs host memory for all of its bytes.
                  EXPECT_EQUAL(cuMemsetD8(managed, 1, 1024 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
                  EXPECT_EQUAL(int{*reinterpret_cast<unsigned char*>(managed)}, 0);
                  const std::vector<unsigned char> bytes(32 * MiB, 3);
                  for (int i = 0; i < 20; i++) {  // the same place again takes no more
                      EXPECT_EQUAL(cuMemcpyHtoD(device, bytes.data(), bytes.size()), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuMemsetD8(managed, 2, 16 * MiB), CUDA_SUCCESS);
                  }
                  EXPECT_EQUAL(cuMemcpyHtoD(device + bytes.size(), bytes.data(), bytes.size()),
                               CUDA_ERROR_OUT_OF_MEMORY);
                  EXPECT_EQUAL(cuMemcpyDtoD(copy, device, bytes.size()), CUDA_ERROR_OUT_OF_MEMORY);
                  unsigned char byte = 0;
                  EXPECT_EQUAL(cuMemcpyDtoH(&byte, copy, 1), CUDA_SUCCESS);
                  EXPECT_EQUAL(int{byte}, 7);
                  // The context is as it was: what is freed can be used again.
                  EXPECT_EQUAL(cuMemFree(device), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemcpyHtoD(copy, bytes.data(), bytes.size()), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
                  // Memory that processes share is the host's too.
                  CUmemAllocationProp prop{};
                  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
                  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
                  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
                  CUmemGenericAllocationHandle handle = 0;
                  CUdeviceptr mapped = 0;
                  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
                  EXPECT_EQUAL(cuMemAddressReserve(&mapped, 64 * MiB, 0, 0, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemCreate(&handle, 64 * MiB, &prop, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemMap(mapped, 64 * MiB, 0, handle, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemSetAccess(mapped, 64 * MiB, &access, 1), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemsetD8(mapped, 1, 64 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
                  EXPECT_EQUAL(cuMemsetD8(mapped, 1, 8 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemcpyHtoD(copy + 64 * MiB, bytes.data(), 16 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
              },
              &said) == "");
    CHECK(
        said ==
        "cuslice fake GPU: the contents of the fake GPUs' memory would take 1024 MiB more of the host's, beyond the 64 "
        "MiB that a process may take (CUSLICE_FAKE_HOST): CUDA_ERROR_OUT_OF_MEMORY\n");
}

TEST_CASE("a bound on the host's memory that is no size is refused") {
    std::string said;
    const Environment wrong = {{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_HOST", "much"}};
    CHECK(in_child(
              wrong, [](const Report& report) { EXPECT_EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY); }, &said) == "");
    CHECK(said.rfind("cuslice fake GPU: CUSLICE_FAKE_HOST: \"much\" is not a size", 0) == 0);
}
