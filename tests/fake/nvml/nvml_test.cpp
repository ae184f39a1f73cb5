// SPDX-License-Identifier: Apache-2.0
// The fake management library tells the same story as the fake driver.

#include <cuda.h>
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sched.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/skip.h"
#include "virtual_gpu/driver/nvml.h"

using namespace cuslice::nvml;
using namespace fake_test;

namespace {

nvmlDevice_t device_at(const Report& report, unsigned index) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
    EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
    return device;
}

}  // namespace

TEST_CASE("devices are the driver's, in PCI order") {
    CHECK(
        in_child({{"CUSLICE_FAKE", "t4,h100,rtx4090"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}, [](const Report& report) {
            EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
            EXPECT_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
            unsigned count = 0;
            EXPECT_EQUAL(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
            EXPECT_EQUAL(count, 3U);
            for (unsigned i = 0; i < count; i++) {
                nvmlDevice_t device = nullptr, same = nullptr;
                char name[2][96], uuid[96], pci[32], expected[96];
                CUuuid id;
                nvmlPciInfo_t info;
                int major = 0, minor = 0, driver_major = 0;
                unsigned index = 99;
                const int ordinal = static_cast<int>(i);
                EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(i, &device), NVML_SUCCESS);
                EXPECT_EQUAL(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
                EXPECT_EQUAL(index, i);
                EXPECT_EQUAL(nvmlDeviceGetName(device, name[0], 96), NVML_SUCCESS);
                EXPECT_EQUAL(cuDeviceGetName(name[1], 96, ordinal), CUDA_SUCCESS);
                EXPECT_EQUAL(std::string(name[0]), std::string(name[1]));
                EXPECT_EQUAL(nvmlDeviceGetUUID(device, uuid, 96), NVML_SUCCESS);
                EXPECT_EQUAL(cuDeviceGetUuid(&id, ordinal), CUDA_SUCCESS);
                const auto* b = reinterpret_cast<const unsigned char*>(id.bytes);
                std::snprintf(expected, sizeof expected,
                              "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                              b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
                EXPECT_EQUAL(std::string(uuid), std::string(expected));
                EXPECT_EQUAL(nvmlDeviceGetHandleByUUID(uuid, &same), NVML_SUCCESS);
                EXPECT(same == device);
                EXPECT_EQUAL(cuDeviceGetPCIBusId(pci, sizeof pci, ordinal), CUDA_SUCCESS);
                same = nullptr;
                EXPECT_EQUAL(nvmlDeviceGetHandleByPciBusId_v2(pci, &same), NVML_SUCCESS);
                EXPECT(same == device);
                EXPECT_EQUAL(nvmlDeviceGetPciInfo_v3(device, &info), NVML_SUCCESS);
                EXPECT_EQUAL(strcasecmp(info.busIdLegacy, pci), 0);
                EXPECT_EQUAL(std::string(info.busId), "0000" + std::string(info.busIdLegacy));
                EXPECT_EQUAL(nvmlDeviceGetCudaComputeCapability(device, &major, &minor), NVML_SUCCESS);
                EXPECT_EQUAL(cuDeviceGetAttribute(&driver_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal),
                             CUDA_SUCCESS);
                EXPECT_EQUAL(major, driver_major);
                char serial[30];
                const nvmlReturn_t has_serial = nvmlDeviceGetSerial(device, serial, sizeof serial);
                EXPECT_EQUAL(has_serial, i == 2 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS);
                if (has_serial == NVML_SUCCESS) {
                    EXPECT_EQUAL(nvmlDeviceGetHandleBySerial(serial, &same), NVML_SUCCESS);
                    EXPECT(same == device);
                }
            }
            int version = 0, driver = 0;
            EXPECT_EQUAL(nvmlSystemGetCudaDriverVersion(&version), NVML_SUCCESS);
            EXPECT_EQUAL(cuDriverGetVersion(&driver), CUDA_SUCCESS);
            EXPECT_EQUAL(version, driver);
        }) == "");
}

TEST_CASE("memory and processes are what the driver's books say") {
    CHECK(in_child(one_t4, [](const Report& report) {
              int ready[2];
              EXPECT(pipe(ready) == 0);
              const pid_t other = fork();
              if (other == 0) {
                  use_device(report);
                  CUdeviceptr pointer = 0;
                  EXPECT_EQUAL(cuMemAlloc(&pointer, 1000 * MiB), CUDA_SUCCESS);
                  EXPECT(write(ready[1], "x", 1) == 1);
                  pause();
              }
              char byte = 0;
              EXPECT(read(ready[0], &byte, 1) == 1);
              const nvmlDevice_t device = device_at(report, 0);
              use_device(report);
              size_t free = 0, total = 0;
              EXPECT_EQUAL(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
              nvmlMemory_t memory{};
              nvmlMemory_v2_t newer{};
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
              EXPECT_EQUAL(memory.total, 15360ULL << 20);
              EXPECT_EQUAL(memory.free, free);
              EXPECT_EQUAL(memory.used + memory.free, memory.total);
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo_v2(device, &newer), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
              newer.version = struct_version<nvmlMemory_v2_t>(2);
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo_v2(device, &newer), NVML_SUCCESS);
              EXPECT_EQUAL(newer.used, (2 * 104 + 1000) * MiB);
              EXPECT_EQUAL(newer.used + newer.reserved + newer.free, newer.total);

              unsigned count = 0;
              EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr),
                           NVML_ERROR_INSUFFICIENT_SIZE);
              EXPECT_EQUAL(count, 2U);
              std::vector<nvmlProcessInfo_t> processes(8);
              count = 8;
              EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()), NVML_SUCCESS);
              EXPECT_EQUAL(count, 2U);
              unsigned long long mine = 0, theirs = 0;
              for (unsigned i = 0; i < count; i++) {
                  if (processes[i].pid == static_cast<unsigned>(getpid()))
                      mine = processes[i].usedGpuMemory;
                  if (processes[i].pid == static_cast<unsigned>(other))
                      theirs = processes[i].usedGpuMemory;
                  EXPECT_EQUAL(processes[i].gpuInstanceId, ~0U);
              }
              EXPECT_EQUAL(mine, 104ULL * MiB);
              EXPECT_EQUAL(theirs, 1104ULL * MiB);
              kill(other, SIGKILL);
              waitpid(other, nullptr, 0);
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo_v2(device, &newer), NVML_SUCCESS);
              EXPECT_EQUAL(newer.used, 104ULL * MiB);
              count = 8;
              EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()), NVML_SUCCESS);
              EXPECT_EQUAL(count, 1U);
              EXPECT_EQUAL(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, processes.data()), NVML_SUCCESS);
              EXPECT_EQUAL(count, 0U);
          }) == "");
}

TEST_CASE("asking NVML about a process's own GPU does not lose what the process holds") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const nvmlDevice_t device = device_at(report, 0);
              nvmlMemory_t memory{};
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
              const pid_t other = fork();
              if (other == 0) {  // looks as any other process would
                  EXPECT_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
                  EXPECT_EQUAL(memory.used, (104 + 250) * MiB + MiB / 4);
                  _exit(0);
              }
              waitpid(other, nullptr, 0);
          }) == "");
}

TEST_CASE("where it can't be seen who lives, NVML answers an error, and nobody's memory is lost") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const nvmlDevice_t device = device_at(report, 0);
              const auto listed = [&](unsigned* count) {
                  std::vector<nvmlProcessInfo_t> processes(8);
                  *count = 8;
                  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes.data());
              };
              unsigned count = 0;
              EXPECT_EQUAL(listed(&count), NVML_SUCCESS);
              EXPECT_EQUAL(count, 1U);
              rlimit files{};
              EXPECT_EQUAL(getrlimit(RLIMIT_NOFILE, &files), 0);
              const rlimit none{0, files.rlim_max};
              EXPECT_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
              nvmlMemory_t memory{};
              EXPECT_EQUAL(listed(&count), NVML_ERROR_UNKNOWN);
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
              EXPECT_EQUAL(setrlimit(RLIMIT_NOFILE, &files), 0);
              EXPECT_EQUAL(memory.used, (104 + 250) * MiB + MiB / 4);
              EXPECT_EQUAL(listed(&count), NVML_SUCCESS);
              EXPECT_EQUAL(count, 1U);
          }) == "");
}

TEST_CASE("NVML lists who is visible in the caller's pid namespace, by the pids there") {
#ifdef __SANITIZE_ADDRESS__
    cuslice::tests::skip("the look for leaks starts a process, which a pid namespace without its first one can't");
    return;
#endif
    // Without root's rights, only in a user namespace.
    const int namespaces = geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWPID | CLONE_NEWUSER;
    if (!cuslice::tests::can_unshare(namespaces))
        return;
    CHECK(in_child(one_t4, [&](const Report& report) {
              int ready[2];
              EXPECT(pipe(ready) == 0);
              EXPECT(unshare(namespaces) == 0);
              const auto listed = [&] {
                  std::vector<nvmlProcessInfo_t> processes(8);
                  unsigned count = 8;
                  const nvmlDevice_t device = device_at(report, 0);
                  EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()), NVML_SUCCESS);
                  std::string pids;
                  for (unsigned i = 0; i < count; i++)
                      pids += std::to_string(processes[i].pid) + " ";
                  return pids;
              };
              const pid_t inner = fork();
              if (inner == 0) {
                  EXPECT_EQUAL(getpid(), 1);
                  use_device(report);
                  EXPECT(write(ready[1], "x", 1) == 1);
                  pause();
              }
              char byte = 0;
              EXPECT(read(ready[0], &byte, 1) == 1);
              EXPECT_EQUAL(listed(), std::to_string(inner) + " ");
              use_device(report);
              EXPECT_EQUAL(listed().size(), (std::to_string(inner) + " " + std::to_string(getpid()) + " ").size());
              kill(inner, SIGKILL);
              waitpid(inner, nullptr, 0);
          }) == "");
    CHECK(in_child(one_t4, [&](const Report& report) {
              EXPECT(unshare(namespaces) == 0);
              use_device(report);
              const pid_t inner = fork();
              if (inner == 0) {  // has no context, and can't see its parent
                  std::vector<nvmlProcessInfo_t> processes(8);
                  unsigned count = 8;
                  const nvmlDevice_t device = device_at(report, 0);
                  EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()), NVML_SUCCESS);
                  EXPECT_EQUAL(count, 0U);
                  nvmlMemory_t memory{};
                  EXPECT_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
                  EXPECT_EQUAL(memory.used, (104 + 250) * MiB + MiB / 4);
                  _exit(0);
              }
              int status = 0;
              waitpid(inner, &status, 0);
              EXPECT_EQUAL(status, 0);
          }) == "");
}

TEST_CASE("errors are NVML's") {
    std::string said;
    CHECK(in_child(
              one_t4,
              [](const Report& report) {
                  unsigned number = 0;
                  nvmlDevice_t device = nullptr;
                  char text[8];
                  nvmlUtilization_t utilization{};
                  EXPECT_EQUAL(nvmlDeviceGetCount_v2(&number), NVML_ERROR_UNINITIALIZED);
                  EXPECT_EQUAL(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
                  device = device_at(report, 0);
                  EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_ERROR_INVALID_ARGUMENT);
                  EXPECT_EQUAL(nvmlDeviceGetUtilizationRates(reinterpret_cast<nvmlDevice_t>(&number), &utilization),
                               NVML_ERROR_INVALID_ARGUMENT);
                  EXPECT_EQUAL(nvmlDeviceGetUtilizationRates(device, &utilization), NVML_SUCCESS);
                  EXPECT_EQUAL(nvmlDeviceGetName(device, text, sizeof text), NVML_ERROR_INSUFFICIENT_SIZE);
                  EXPECT_EQUAL(nvmlDeviceGetHandleByUUID("GPU-0", &device), NVML_ERROR_NOT_FOUND);
                  EXPECT_EQUAL(nvmlDeviceGetFanSpeed(device, &number), NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(nvmlDeviceGetMigMode(device, &number, &number), NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(std::string(nvmlErrorString(NVML_ERROR_NOT_SUPPORTED)), "Not Supported");
                  char self[256];
                  EXPECT_EQUAL(nvmlSystemGetProcessName(static_cast<unsigned>(getpid()), self, sizeof self),
                               NVML_SUCCESS);
                  EXPECT(std::string(self).find("fake_nvml_test") != std::string::npos);
                  const auto missing = reinterpret_cast<int (*)(nvmlDevice_t, unsigned, unsigned*)>(
                      dlsym(RTLD_DEFAULT, "nvmlDeviceGetViolationStatus"));
                  EXPECT_EQUAL(missing(device, 0, &number), int{NVML_ERROR_NOT_SUPPORTED});
                  EXPECT_EQUAL(missing(device, 0, &number), int{NVML_ERROR_NOT_SUPPORTED});
                  EXPECT_EQUAL(nvmlShutdown(), NVML_SUCCESS);
              },
              &said) == "");
    CHECK(said == "cuslice fake NVML: nvmlDeviceGetViolationStatus is not supported\n");
}

TEST_CASE("every function of the list is exported") {
    for (const char* name : {
#define CUSLICE_NVML_FUNCTION(name, split) #name,
#include "virtual_gpu/driver/nvml_functions.def"
         }) {
        INFO(name);
        CHECK(dlsym(RTLD_DEFAULT, name) != nullptr);
    }
}

TEST_CASE("all processors are near a device, and its affinity lets a thread run on them") {
    CHECK(in_child(one_t4, [](const Report& report) {
              EXPECT_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
              const nvmlDevice_t device = device_at(report, 0);
              cpu_set_t before, one, after;
              EXPECT_EQUAL(sched_getaffinity(0, sizeof before, &before), 0);
              unsigned long mask[CPU_SETSIZE / 64] = {};
              EXPECT_EQUAL(nvmlDeviceGetCpuAffinity(device, CPU_SETSIZE / 64, mask), NVML_SUCCESS);
              EXPECT_EQUAL(nvmlDeviceGetCpuAffinity(device, 0, mask), NVML_ERROR_INVALID_ARGUMENT);
              unsigned first = CPU_SETSIZE;
              for (unsigned i = CPU_SETSIZE; i-- > 0;) {
                  if (!CPU_ISSET(i, &before))
                      continue;
                  first = i;
                  EXPECT((mask[i / 64] >> (i % 64) & 1) == 1);
              }
              for (const auto set : {&nvmlDeviceSetCpuAffinity, &nvmlDeviceClearCpuAffinity}) {
                  CPU_ZERO(&one);
                  CPU_SET(first, &one);
                  EXPECT_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
                  EXPECT_EQUAL(set(device), NVML_SUCCESS);
                  EXPECT_EQUAL(sched_getaffinity(0, sizeof after, &after), 0);
                  for (unsigned i = 0; i < CPU_SETSIZE; i++)
                      EXPECT(!CPU_ISSET(i, &before) || CPU_ISSET(i, &after));
                  EXPECT_EQUAL(set(nullptr), NVML_ERROR_INVALID_ARGUMENT);
              }
          }) == "");
}

// A fake that resolved these to itself would hide a library that stands in NVML's own way.
TEST_CASE("NVML calls itself through its exported names, as NVIDIA's does") {
    Dl_info library{};
    REQUIRE(dladdr(reinterpret_cast<void*>(&nvmlInit_v2), &library) != 0);
    std::string relocations;
    std::FILE* const output = popen(("readelf -Wr '" + std::string(library.dli_fname) + "'").c_str(), "r");
    REQUIRE(output != nullptr);
    for (char part[4096]; const size_t size = std::fread(part, 1, sizeof part, output);)
        relocations.append(part, size);
    REQUIRE(pclose(output) == 0);
    for (const char* name :
         {"nvmlInit_v2", "nvmlInitWithFlags", "nvmlErrorString", "nvmlDeviceGetCount_v2",
          "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetMemoryInfo_v2",
          "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetTopologyCommonAncestor"}) {
        CAPTURE(name);
        bool called = false;
        std::istringstream lines(relocations);
        for (std::string line; std::getline(lines, line);)
            called = called || (line.find("JUMP_SLO") != std::string::npos &&
                                line.find(std::string(" ") + name + " ") != std::string::npos);
        CHECK(called);
    }
}
