// SPDX-License-Identifier: Apache-2.0
// Several processes with the driver on one GPU.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

/// Starts a process that takes bytes of device 0, says so, and waits to be killed.
pid_t taker(const Report& report, size_t bytes) {
    int ready[2];
    EXPECT(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        use_device(report);
        CUdeviceptr pointer = 0;
        EXPECT_EQUAL(cuMemAlloc(&pointer, bytes), CUDA_SUCCESS);
        EXPECT(write(ready[1], "x", 1) == 1);
        pause();
    }
    char byte = 0;
    EXPECT(read(ready[0], &byte, 1) == 1);
    return child;
}

}  // namespace

TEST_CASE("memory that another process took is gone, and back when it is killed") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const pid_t child = taker(report, 10000 * MiB);
              use_device(report);
              const size_t left = free_bytes();
              EXPECT_EQUAL(left, size_t{15843721216} - 2 * 104 * MiB - 10000 * MiB);
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemAlloc(&pointer, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
              kill(child, SIGKILL);
              waitpid(child, nullptr, 0);
              EXPECT_EQUAL(free_bytes(), size_t{15843721216} - 104 * MiB);
              EXPECT_EQUAL(cuMemAlloc(&pointer, left + 1), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a refusal looks for the dead first") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const pid_t child = taker(report, 10000 * MiB);
              use_device(report);
              kill(child, SIGKILL);
              waitpid(child, nullptr, 0);
              CUdeviceptr pointer = 0;
              EXPECT_EQUAL(cuMemAlloc(&pointer, 14000 * MiB), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a GPU that is only looked at is not taken part in") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              use_device(report, 0);
              char name[64];
              EXPECT_EQUAL(cuDeviceGetName(name, sizeof name, 1), CUDA_SUCCESS);
              CUuuid uuid;
              EXPECT_EQUAL(cuDeviceGetUuid(&uuid, 1), CUDA_SUCCESS);
              int files = 0;
              const std::string count = "exit $(ls $CUSLICE_FAKE_DIR | grep -c 'GPU.*lock')";
              files = WEXITSTATUS(system(count.c_str()));
              EXPECT_EQUAL(files, 1);
          }) == "");
}
