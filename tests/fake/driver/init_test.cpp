// SPDX-License-Identifier: Apache-2.0
// Before, at and after cuInit; forked children; what the environment asks for.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("nothing but version, names and look-ups works before cuInit") {
    CHECK(in_child(one_t4, [](const Report& report) {
              int number = 0;
              size_t bytes = 0;
              const char* text = nullptr;
              void* address = nullptr;
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_NOT_INITIALIZED);
              EXPECT_EQUAL(cuMemGetInfo(&bytes, &bytes), CUDA_ERROR_NOT_INITIALIZED);
              EXPECT_EQUAL(cuDriverGetVersion(&number), CUDA_SUCCESS);
              EXPECT_EQUAL(number, 13000);
              EXPECT_EQUAL(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
              EXPECT_EQUAL(std::string(text), "CUDA_ERROR_OUT_OF_MEMORY");
              EXPECT_EQUAL(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
              EXPECT_EQUAL(std::string(text), "out of memory");
              EXPECT_EQUAL(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGetProcAddress("cuInit", &address, 12000, 0, nullptr), CUDA_SUCCESS);
              EXPECT(address == reinterpret_cast<void*>(&cuInit));
              EXPECT_EQUAL(cuInit(1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDeviceGetCount(&number), CUDA_SUCCESS);
              EXPECT_EQUAL(number, 1);
          }) == "");
}

TEST_CASE("a child forked after cuInit can't use the driver; one forked before can") {
    CHECK(in_child(one_t4, [](const Report& report) {
              if (fork() == 0) {
                  use_device(report);
                  EXPECT(free_bytes() > 0);
                  _exit(0);
              }
              wait(nullptr);
              use_device(report);
              if (fork() == 0) {
                  int count = 0;
                  EXPECT_EQUAL(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
                  EXPECT_EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
                  EXPECT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
                  exit(0);
              }
              wait(nullptr);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("without a GPU named, and with a wrong one, one line says what to do") {
    std::string said;
    CHECK(in_child(
              {{"CUSLICE_FAKE", ""}}, [](const Report& report) { EXPECT_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE); },
              &said) == "");
    CHECK(said.rfind("cuslice fake GPU: CUSLICE_FAKE is not set; set it to the GPUs to show, such as 1xt4", 0) == 0);
    said.clear();
    CHECK(in_child(
              {{"CUSLICE_FAKE", "t5"}},
              [](const Report& report) {
                  EXPECT_EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
                  EXPECT_EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY);
              },
              &said) == "");
    CHECK(said.rfind("cuslice fake GPU: CUSLICE_FAKE: there is no profile 't5'; the profiles are: a100-40g", 0) == 0);
    CHECK(said.find('\n') == said.size() - 1);
}

TEST_CASE("CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER choose as NVIDIA's driver does") {
    const auto names = [](const std::string& visible, const std::string& order) {
        std::string listed;
        const std::string failed =
            in_child({{"CUSLICE_FAKE", "t4,h100,l4"}, {"CUDA_VISIBLE_DEVICES", visible}, {"CUDA_DEVICE_ORDER", order}},
                     [](const Report& report) {
                         int count = 0;
                         const CUresult result = cuInit(0);
                         if (result != CUDA_SUCCESS)
                             report.fail("", 0, std::to_string(result));
                         if (result == CUDA_SUCCESS)
                             cuDeviceGetCount(&count);
                         for (int i = 0; i < count; i++) {
                             char name[64];
                             cuDeviceGetName(name, sizeof name, i);
                             report.fail("", i, name);  // the way out of the child
                         }
                     });
        return failed;
    };
    CHECK(names("", "") == ":0: NVIDIA H100 80GB HBM3\n:1: NVIDIA L4\n:2: Tesla T4\n");
    CHECK(names("", "PCI_BUS_ID") == ":0: Tesla T4\n:1: NVIDIA H100 80GB HBM3\n:2: NVIDIA L4\n");
    CHECK(names("2,0", "PCI_BUS_ID") == ":0: NVIDIA L4\n:1: Tesla T4\n");
    CHECK(names("1,7,0", "PCI_BUS_ID") == ":0: NVIDIA H100 80GB HBM3\n");
    CHECK(names("-1", "PCI_BUS_ID") == ":0: 100\n");
    CHECK(names("0,0", "PCI_BUS_ID") == ":0: 101\n");
}

TEST_CASE("the launcher's question is answered without starting anything") {
    const auto check = reinterpret_cast<int (*)(const char*, char*, size_t)>(dlsym(RTLD_DEFAULT, "cuslice_fake_check"));
    REQUIRE(check != nullptr);
    char message[4096] = "x";
    CHECK(check("2xA100-40G,1xt4", message, sizeof message) == 0);
    // Each GPU's UUID, and the bytes of its first context.
    std::istringstream lines(message);
    std::vector<std::string> uuids;
    uint64_t bytes = 0;
    for (std::string uuid; lines >> uuid >> bytes; uuids.push_back(uuid)) {
        CHECK(uuid.rfind("GPU-", 0) == 0);
        CHECK(bytes > 0);
    }
    CHECK(lines.eof());
    CHECK(std::set<std::string>(uuids.begin(), uuids.end()).size() == 3);
    CHECK(check("t5", message, sizeof message) != 0);
    CHECK(std::string(message).rfind("there is no profile 't5'; the profiles are: ", 0) == 0);
    CHECK(check("t5", message, 9) != 0);
    CHECK(std::string(message) == "there is");
    CHECK(check(nullptr, nullptr, 0) != 0);
    CHECK(dlsym(RTLD_DEFAULT, "cuslice_marker") == nullptr);
}
