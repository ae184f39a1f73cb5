// SPDX-License-Identifier: Apache-2.0
// NVML's figures of a device that work keeps busy, on the virtual clock.

#include <cuda.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "virtual_gpu/driver/nvml.h"

using namespace cuslice::nvml;
using namespace fake_test;

namespace {

using Samples = std::array<nvmlProcessUtilizationSample_t, 4>;

constexpr const char* kStep = R"(
.version 8.0
.target sm_50
.address_size 64
.visible .entry step() { ret; }
)";
constexpr unsigned long long kSecond = 1'000'000;  // NVML's times

Environment timed(const std::string& gpus) {
    return {{"CUSLICE_FAKE", gpus}, {"CUSLICE_FAKE_COST", "step=250ms"}, {"CUSLICE_FAKE_CLOCK", "virtual"}};
}

/// NVML's device 0, of which the primary context is current.
nvmlDevice_t start(const Report& report) {
    nvmlDevice_t device = nullptr;
    use_device(report);
    EXPECT_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
    EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    return device;
}

/// Runs kernels of 250 ms to their end.
void run_steps(const Report& report, int count) {
    CUmodule module = nullptr;
    CUfunction step = nullptr;
    EXPECT_EQUAL(cuModuleLoadData(&module, kStep), CUDA_SUCCESS);
    EXPECT_EQUAL(cuModuleGetFunction(&step, module, "step"), CUDA_SUCCESS);
    for (int i = 0; i < count; i++)
        EXPECT_EQUAL(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
}

nvmlUtilization_t rates(const Report& report, nvmlDevice_t device) {
    nvmlUtilization_t rates{};
    EXPECT_EQUAL(nvmlDeviceGetUtilizationRates(device, &rates), NVML_SUCCESS);
    return rates;
}

}  // namespace

TEST_CASE("utilization is the part of the last second in which kernels ran, and copies") {
    CHECK(in_child(timed("2xt4"), [](const Report& report) {
              nvmlDevice_t device = start(report), idle = nullptr;
              EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(1, &idle), NVML_SUCCESS);
              EXPECT_EQUAL(rates(report, device).gpu, 0U);
              run_steps(report, 2);
              EXPECT_EQUAL(rates(report, device).gpu, 50U);
              EXPECT_EQUAL(rates(report, device).memory, 0U);
              EXPECT_EQUAL(rates(report, idle).gpu, 0U);
              run_steps(report, 8);
              EXPECT_EQUAL(rates(report, device).gpu, 100U);

              CUdeviceptr memory = 0;
              void* pinned = nullptr;
              EXPECT_EQUAL(cuMemAlloc(&memory, 256 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocHost(&pinned, 256 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyHtoD(memory, pinned, 256 * MiB), CUDA_SUCCESS);
              const nvmlUtilization_t copied = rates(report, device);
              EXPECT(copied.memory > 0);
              EXPECT_EQUAL(copied.gpu + copied.memory, 100U);
          }) == "");
}

TEST_CASE("a device that computes is at its highest clocks") {
    CHECK(in_child(timed("rtx4090"), [](const Report& report) {
              nvmlDevice_t device = start(report);
              unsigned clock = 0, highest = 0;
              unsigned long long reasons = 0;
              nvmlPstates_t state{};
              EXPECT_EQUAL(nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_SM, &highest), NVML_SUCCESS);
              EXPECT_EQUAL(nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &clock), NVML_SUCCESS);
              EXPECT(clock < highest);
              EXPECT_EQUAL(nvmlDeviceGetPerformanceState(device, &state), NVML_SUCCESS);
              EXPECT_EQUAL(state, NVML_PSTATE_8);
              EXPECT_EQUAL(nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons), NVML_SUCCESS);
              EXPECT(reasons == nvmlClocksEventReasonGpuIdle);
              run_steps(report, 1);
              EXPECT_EQUAL(nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &clock), NVML_SUCCESS);
              EXPECT_EQUAL(clock, highest);
              EXPECT_EQUAL(nvmlDeviceGetPerformanceState(device, &state), NVML_SUCCESS);
              EXPECT_EQUAL(state, NVML_PSTATE_0);
              EXPECT_EQUAL(nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons), NVML_SUCCESS);
              EXPECT(reasons == nvmlClocksEventReasonNone);
          }) == "");
}

TEST_CASE("the use of each process is told since the time of the sample before") {
    CHECK(in_child(timed("t4"), [](const Report& report) {
              nvmlDevice_t device = start(report);
              Samples samples{};
              unsigned count = samples.size();
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, samples.data(), &count, 0), NVML_ERROR_NOT_FOUND);
              EXPECT_EQUAL(count, 0U);

              run_steps(report, 1);
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, nullptr, nullptr, 0), NVML_ERROR_INVALID_ARGUMENT);
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, nullptr, &count, 0), NVML_ERROR_INSUFFICIENT_SIZE);
              EXPECT_EQUAL(count, 1U);
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, samples.data(), &count, 0), NVML_SUCCESS);
              EXPECT_EQUAL(count, 1U);
              EXPECT_EQUAL(samples[0].pid, static_cast<unsigned>(getpid()));
              EXPECT(samples[0].timeStamp > 1'000'000'000 * kSecond);
              EXPECT(samples[0].smUtil > 0);

              const unsigned long long then = samples[0].timeStamp;
              run_steps(report, 1);
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, samples.data(), &count, then), NVML_SUCCESS);
              EXPECT_EQUAL(samples[0].smUtil, 100U);
              EXPECT_EQUAL(samples[0].memUtil, 0U);
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, samples.data(), &count, then - kSecond / 2),
                           NVML_SUCCESS);
              EXPECT_EQUAL(samples[0].smUtil, 67U);
              count = samples.size();
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, samples.data(), &count, then + kSecond),
                           NVML_ERROR_NOT_FOUND);
          }) == "");
}

TEST_CASE("the newer form has the same, and a version") {
    CHECK(in_child(timed("t4"), [](const Report& report) {
              nvmlDevice_t device = start(report);
              run_steps(report, 1);
              nvmlProcessUtilizationInfo_v1_t process{};
              nvmlProcessesUtilizationInfo_v1_t info{};
              EXPECT_EQUAL(nvmlDeviceGetProcessesUtilizationInfo(device, nullptr), NVML_ERROR_INVALID_ARGUMENT);
              EXPECT_EQUAL(nvmlDeviceGetProcessesUtilizationInfo(device, &info), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
              info.version = struct_version<nvmlProcessesUtilizationInfo_v1_t>(1);
              EXPECT_EQUAL(nvmlDeviceGetProcessesUtilizationInfo(device, &info), NVML_ERROR_INSUFFICIENT_SIZE);
              EXPECT_EQUAL(info.processSamplesCount, 1U);
              info.procUtilArray = &process;
              EXPECT_EQUAL(nvmlDeviceGetProcessesUtilizationInfo(device, &info), NVML_SUCCESS);
              EXPECT_EQUAL(process.pid, static_cast<unsigned>(getpid()));
              EXPECT(process.smUtil > 0);
          }) == "");
}

TEST_CASE("no process is told of a GPU that is divided, or by a driver that lists none") {
    for (const char* text : {"[[gpu]]\nprofile = \"h200\"\nmig = [\"1g.18gb\"]\n",
                             "[[gpu]]\nprofile = \"h200\"\n[driver]\nprocess-list = \"empty\"\n"}) {
        const Folder folder;
        const std::string machine = folder.path() + "/machine.toml";
        std::ofstream(machine) << text;
        CHECK(in_child(timed(machine), [](const Report& report) {
                  nvmlDevice_t device = start(report), instance = nullptr;
                  run_steps(report, 1);
                  unsigned count = 0;
                  EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, nullptr, &count, 0), NVML_ERROR_NOT_FOUND);
                  const bool divided = nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &instance) == NVML_SUCCESS;
                  EXPECT_EQUAL(rates(report, divided ? instance : device).gpu, 25U);
              }) == "");
    }
}

TEST_CASE("where work takes no time, nothing is busy") {
    CHECK(in_child(one_t4, [](const Report& report) {
              nvmlDevice_t device = start(report);
              run_steps(report, 1);
              Samples samples{};
              unsigned count = samples.size();
              EXPECT_EQUAL(rates(report, device).gpu, 0U);
              EXPECT_EQUAL(nvmlDeviceGetProcessUtilization(device, samples.data(), &count, 0), NVML_ERROR_NOT_FOUND);
              EXPECT_EQUAL(count, 0U);
          }) == "");
}
