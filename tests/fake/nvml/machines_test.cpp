// SPDX-License-Identifier: Apache-2.0
// Answers of the fake management library on machines of other kinds: older drivers, memory that is the host's, MIG.

#include <cuda.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
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

TEST_CASE("an older NVML counts as CUDA does, and lists what its version lists") {
    const Folder folder;
    const std::string file = folder.path() + "/old.toml";
    std::ofstream(file) << "[driver]\nversion = \"470.256.02\"\nprocess-id-offset = 1000\nprocess-memory = "
                           "false\n[[gpu]]\nprofile = \"t4\"\n";
    CHECK(in_child({{"CUSLICE_FAKE", file}}, [](const Report& report) {
              const nvmlDevice_t device = device_at(report, 0);
              use_device(report);
              size_t free = 0, total = 0;
              EXPECT_EQUAL(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
              nvmlMemory_t memory{};
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
              EXPECT_EQUAL(memory.total, total);
              EXPECT_EQUAL(memory.free, free);
              EXPECT_EQUAL(memory.used, total - free);
              nvmlProcessInfo_t process{};
              unsigned count = 1;
              EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, &process), NVML_SUCCESS);
              EXPECT_EQUAL(process.pid, static_cast<unsigned>(getpid()) + 1000);
              EXPECT_EQUAL(process.usedGpuMemory, kValueNotAvailable);
              char version[80];
              EXPECT_EQUAL(nvmlSystemGetDriverVersion(version, sizeof version), NVML_SUCCESS);
              EXPECT_EQUAL(std::string(version), "470.256.02");
              int cuda = 0;
              EXPECT_EQUAL(nvmlSystemGetCudaDriverVersion(&cuda), NVML_SUCCESS);
              EXPECT_EQUAL(cuda, 11040);
          }) == "");
}

TEST_CASE("memory that is the host's has no figures, and a process list may be empty or not supported") {
    const Folder folder;
    const std::string file = folder.path() + "/gpus.toml", list = GENERATE("empty", "unsupported");
    std::ofstream(file) << "[driver]\nprocess-list = \"" << list << "\"\n[[gpu]]\nprofile = \"gb10\"\n";
    CHECK(in_child({{"CUSLICE_FAKE", file}}, [&](const Report& report) {
              const nvmlDevice_t device = device_at(report, 0);
              use_device(report);
              nvmlMemory_t memory{};
              nvmlMemory_v2_t newer{};
              newer.version = struct_version<nvmlMemory_v2_t>(2);
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(nvmlDeviceGetMemoryInfo_v2(device, &newer), NVML_ERROR_NOT_SUPPORTED);
              unsigned count = 0;
              EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr),
                           list == "empty" ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(count, 0U);
              int integrated = 0;
              EXPECT_EQUAL(cuDeviceGetAttribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(integrated, 1);
              // The host's programs move the free memory.
              size_t free = 0, later = 0, total = 0;
              EXPECT_EQUAL(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemGetInfo(&later, &total), CUDA_SUCCESS);
              EXPECT(free != later);
          }) == "");
}

TEST_CASE("MIG: NVML lists the GPUs, and their instances by handles of their own") {
    const Folder folder;
    const std::string file = folder.path() + "/gpus.toml";
    std::ofstream(file)
        << "[[gpu]]\nprofile = \"h200\"\nmig = [\"1g.18gb\", \"3g.71gb\"]\n[[gpu]]\nprofile = \"h200\"\n";
    CHECK(in_child({{"CUSLICE_FAKE", file}}, [](const Report& report) {
              const nvmlDevice_t whole = device_at(report, 0), other = device_at(report, 1);
              unsigned count = 0, current = 7, pending = 7, most = 0;
              EXPECT_EQUAL(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
              EXPECT_EQUAL(count, 2U);
              EXPECT_EQUAL(nvmlDeviceGetMigMode(whole, &current, &pending), NVML_SUCCESS);
              EXPECT_EQUAL(current, 1U);
              EXPECT_EQUAL(nvmlDeviceGetMigMode(other, &current, &pending), NVML_SUCCESS);
              EXPECT_EQUAL(current, 0U);
              EXPECT_EQUAL(nvmlDeviceGetMaxMigDeviceCount(whole, &most), NVML_SUCCESS);
              EXPECT_EQUAL(most, 7U);
              nvmlDevice_t first = nullptr, second = nullptr, none = nullptr, found = nullptr;
              EXPECT_EQUAL(nvmlDeviceGetMigDeviceHandleByIndex(whole, 0, &first), NVML_SUCCESS);
              EXPECT_EQUAL(nvmlDeviceGetMigDeviceHandleByIndex(whole, 1, &second), NVML_SUCCESS);
              EXPECT_EQUAL(nvmlDeviceGetMigDeviceHandleByIndex(whole, 2, &none), NVML_ERROR_NOT_FOUND);
              EXPECT_EQUAL(nvmlDeviceGetMigDeviceHandleByIndex(other, 0, &none), NVML_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(second, &found), NVML_SUCCESS);
              EXPECT(found == whole);
              EXPECT_EQUAL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(whole, &found), NVML_ERROR_INVALID_ARGUMENT);
              EXPECT_EQUAL(nvmlDeviceIsMigDeviceHandle(second, &current), NVML_SUCCESS);
              EXPECT_EQUAL(current, 1U);
              char uuid[96];
              EXPECT_EQUAL(nvmlDeviceGetUUID(first, uuid, sizeof uuid), NVML_SUCCESS);
              EXPECT_EQUAL(std::string(uuid).substr(0, 4), "MIG-");
              EXPECT_EQUAL(nvmlDeviceGetHandleByUUID(uuid, &found), NVML_SUCCESS);
              EXPECT(found == first);
              nvmlPciInfo_t pci{};
              EXPECT_EQUAL(nvmlDeviceGetPciInfo_v3(first, &pci), NVML_ERROR_INVALID_ARGUMENT);

              // CUDA has the first instance, and nothing else.
              use_device(report);
              int devices = 0;
              CUuuid mine{};
              EXPECT_EQUAL(cuDeviceGetCount(&devices), CUDA_SUCCESS);
              EXPECT_EQUAL(devices, 1);
              EXPECT_EQUAL(cuDeviceGetUuid_v2(&mine, 0), CUDA_SUCCESS);
              char hex[3];
              std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(mine.bytes[0]));
              EXPECT_EQUAL(std::string(uuid).substr(4, 2), hex);
              char name[96];
              EXPECT_EQUAL(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(std::string(name), "NVIDIA H200 MIG 1g.18gb");
              const auto used = [&](nvmlDevice_t device) {
                  nvmlMemory_v2_t memory{};
                  memory.version = struct_version<nvmlMemory_v2_t>(2);
                  EXPECT_EQUAL(nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_SUCCESS);
                  return memory.used;
              };
              EXPECT_EQUAL(used(first), 518ULL << 20);
              EXPECT_EQUAL(used(whole), 518ULL << 20);
              EXPECT_EQUAL(used(second), 0ULL);
              CUdeviceptr memory = 0;
              CUipcMemHandle shared{};
              EXPECT_EQUAL(cuMemAlloc(&memory, 4 << 20), CUDA_SUCCESS);
              EXPECT_EQUAL(cuIpcGetMemHandle(&shared, memory), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuMemFree(memory), CUDA_SUCCESS);
              for (const nvmlDevice_t device : {first, whole}) {
                  nvmlProcessInfo_t process{};
                  unsigned listed = 1, id = 0;
                  EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &listed, &process), NVML_SUCCESS);
                  EXPECT_EQUAL(listed, 1U);
                  EXPECT_EQUAL(nvmlDeviceGetGpuInstanceId(first, &id), NVML_SUCCESS);
                  EXPECT_EQUAL(process.gpuInstanceId, id);
              }
          }) == "");
}
