// SPDX-License-Identifier: Apache-2.0
// Failures on demand.

#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "fake/private_driver.h"
#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

Environment injecting(const std::string& what) { return {{"CUSLICE_FAKE", "2xt4"}, {"CUSLICE_FAKE_INJECT", what}}; }

/// The line that a malformed value gets.
std::string complaint(const std::string& what) {
    std::string said;
    const std::string failed = in_child(
        injecting(what), [](const Report& report) { EXPECT_EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY); }, &said);
    return failed + said;
}

}  // namespace

TEST_CASE("the nth call fails, from the nth on, or every one") {
    CHECK(in_child(injecting("cuMemAlloc_v2:3=2,cuMemFree_v2:2+=700,cuCtxSynchronize:*=719"), [](const Report& report) {
              use_device(report);
              CUdeviceptr pointer[5];
              for (int i = 0; i < 5; i++) {
                  EXPECT_EQUAL(cuMemAlloc(&pointer[i], 512), i == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
              }
              EXPECT_EQUAL(cuMemFree(pointer[0]), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(pointer[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
              EXPECT_EQUAL(cuMemFree(pointer[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
          }) == "");
}

TEST_CASE("cuInit itself can fail") {
    CHECK(in_child(injecting("cuInit:*=100"),
                   [](const Report& report) { EXPECT_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE); }) == "");
}

TEST_CASE("a device is lost after so many calls, and the others are not") {
    CHECK(in_child(injecting("lost:1@50"), [](const Report& report) {
              const CUcontext lost = use_device(report, 1);
              CUcontext other = nullptr;
              for (int i = 0; i < 60; i++)
                  cuCtxSynchronize();
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_DEVICE_UNAVAILABLE);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
              EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);  // it is there already
              use_device(report, 0);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(lost), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_DEVICE_UNAVAILABLE);
              EXPECT_EQUAL(cuCtxCreate(&other, nullptr, 0, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
          }) == "");
}

TEST_CASE("a name as programs write it means all versions of the function, which are counted together") {
    CHECK(in_child(injecting("cuMemAlloc:2=2,cuMemFree_v2:*=700"), [](const Report& report) {
              use_device(report);
              CUdeviceptr pointer = 0;
              unsigned small = 0;
              EXPECT_EQUAL(cuMemAlloc_v2(&pointer, 512), CUDA_SUCCESS);
              auto* const oldest =
                  reinterpret_cast<CUresult (*)(unsigned*, unsigned)>(dlsym(RTLD_DEFAULT, "cuMemAlloc"));
              EXPECT(oldest != nullptr);
              EXPECT_EQUAL(oldest(&small, 512), CUDA_ERROR_OUT_OF_MEMORY);
              // Neither another function that begins so, nor another version of one that is named.
              EXPECT_EQUAL(cuMemAllocManaged(&pointer, 512, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc_v2(&pointer, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree_v2(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
          }) == "");
}

TEST_CASE("a test changes what is injected in its own process") {
    CHECK(in_child({{"CUSLICE_FAKE", "1xt4"}, {"CUSLICE_FAKE_INJECT", "cuInit:*=100"}}, [](const Report& report) {
              void* found = nullptr;
              CUdriverProcAddressQueryResult status{};
              EXPECT_EQUAL(cuGetProcAddress_v2(cuslice::fake::kInject, &found, CUDA_VERSION, 0, &status), CUDA_SUCCESS);
              auto* const inject = reinterpret_cast<const char* (*)(const char*)>(found);
              EXPECT(inject != nullptr);
              // In the variable's place, also before cuInit.
              EXPECT(inject("cuMemAlloc:2=2") == nullptr);
              use_device(report);
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_SUCCESS);
              // Another item leaves the count of the first as it is.
              EXPECT(inject("cuMemFree:*=700") == nullptr);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
              EXPECT(std::string(inject("cuNonsense:1=2")).find("no function 'cuNonsense'") != std::string::npos);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
              EXPECT(inject("") == nullptr);
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_SUCCESS);
              EXPECT(inject("cuMemAlloc:*=2") == nullptr);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_OUT_OF_MEMORY);
          }) == "");
}

TEST_CASE("an item that has happened leaves its name, where somebody has made the folder for it") {
    const std::string items = "cuMemAlloc:2=2,cuMemFree:*=700,lost:1@100,delay:cuMemAlloc=1ns,cuMemAlloc:7=2";
    CHECK(in_child(injecting(items), [](const Report& report) {
              const std::string folder = std::string(getenv("CUSLICE_FAKE_DIR")) + "/injected";
              const auto happened = [&](const char* item) { return access((folder + "/" + item).c_str(), F_OK) == 0; };
              use_device(report);
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_SUCCESS);
              EXPECT(!happened("delay:cuMemAlloc=1ns"));
              EXPECT_EQUAL(access(folder.c_str(), F_OK), -1);
              EXPECT_EQUAL(mkdir(folder.c_str(), 0700), 0);
              errno = 77;
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(errno, 77);
              EXPECT(happened("cuMemAlloc:2=2"));
              EXPECT(!happened("cuMemFree:*=700") && !happened("lost:1@100") && !happened("cuMemAlloc:7=2"));
              EXPECT_EQUAL(cuMemFree(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
              EXPECT(happened("cuMemFree:*=700"));
              for (int i = 0; i < 100; i++)
                  cuCtxSynchronize();
              EXPECT(happened("lost:1@100") && !happened("cuMemAlloc:7=2"));
          }) == "");
}

TEST_CASE("a delay makes each call take that long") {
    CHECK(in_child(injecting("delay:cuMemAlloc_v2=20ms"), [](const Report& report) {
              use_device(report);
              timespec before{}, after{};
              CUdeviceptr pointer = 0;
              clock_gettime(CLOCK_MONOTONIC, &before);
              EXPECT_EQUAL(cuMemAlloc(&pointer, 512), CUDA_SUCCESS);
              clock_gettime(CLOCK_MONOTONIC, &after);
              EXPECT((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 20000000);
          }) == "");
}

TEST_CASE("calls that are to meet wait in the driver for each other, as many rounds as there are") {
    CHECK(in_child(injecting("meet:cuMemAlloc_v2=2"), [](const Report& report) {
              use_device(report);
              CUcontext context = nullptr;
              EXPECT_EQUAL(cuCtxGetCurrent(&context), CUDA_SUCCESS);
              std::atomic<int> inside{0}, alone{0};
              const auto allocate = [&] {
                  cuCtxSetCurrent(context);
                  for (int round = 1; round <= 3; round++) {
                      CUdeviceptr pointer = 0;
                      inside++;
                      alone += cuMemAlloc(&pointer, 512) != CUDA_SUCCESS || inside < 2 * round;
                  }
              };
              std::thread other(allocate);
              allocate();
              other.join();
              EXPECT_EQUAL(alone.load(), 0);
          }) == "");
}

TEST_CASE("what is malformed makes cuInit fail with one line that says why") {
    const std::string form =
        "; an item is FUNCTION:N=CUresult (N: 3, 3+ or *), lost:DEVICE@CALLS, delay:FUNCTION=50us or meet:FUNCTION=2, "
        "items are separated by commas\n";
    const std::string start = "cuslice fake GPU: CUSLICE_FAKE_INJECT: ";
    CHECK(complaint("cuMemAlloc:x=2") == start + "'cuMemAlloc:x=2': 'x' says no call" + form);
    CHECK(
        complaint("cuNonsense:1=2") ==
        start +
            "'cuNonsense:1=2': the driver has no function 'cuNonsense' (cuMemAlloc, or cuMemAlloc_v2 for one version)" +
            form);
    CHECK(complaint("cuMemAlloc_v2:1=0") == start + "'cuMemAlloc_v2:1=0': '0' is no CUresult (1 to 999)" + form);
    CHECK(complaint("cuMemAlloc_v2:0=2") == start + "'cuMemAlloc_v2:0=2': '0' says no call" + form);
    CHECK(complaint("lost:1") ==
          start + "'lost:1': lost needs a device and a number of calls, as in lost:1@100" + form);
    CHECK(complaint("delay:cuMemAlloc_v2=50") ==
          start + "'delay:cuMemAlloc_v2=50': '50' is not a time, such as 50us (ns, us, ms, s; at most an hour)" + form);
    CHECK(complaint("meet:cuMemAlloc_v2=1") ==
          start + "'meet:cuMemAlloc_v2=1': '1' is no number of threads, 2 to 1000" + form);
    CHECK(complaint("cuInit:1=2,,") ==
          start + "'': the driver has no function '' (cuMemAlloc, or cuMemAlloc_v2 for one version)" + form);
}
