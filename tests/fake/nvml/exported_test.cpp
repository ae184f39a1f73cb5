// SPDX-License-Identifier: Apache-2.0
// Memory that was exported and released, and who is listed with it: as an H200 with driver 580.159.04 showed it on
// 2026-11-27 (docs/results/hardware/by-hand-2026-11-27.md).

#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/peer_process.h"
#include "virtual_gpu/driver/nvml.h"

using namespace cuslice::nvml;
using namespace fake_test;

namespace {

constexpr size_t kSize = 64 * MiB;

/// NVML's figures of the GPU: of this process, of all processes in the list, and in use at all.
struct Shown {
    uint64_t own = 0, listed = 0, used = 0;
    bool operator==(const Shown&) const = default;
    Shown with(uint64_t more_own, uint64_t more_used) const {
        return {own + more_own, listed + more_own, used + more_used};
    }
};
std::ostream& operator<<(std::ostream& out, const Shown& shown) {
    return out << "{" << shown.own << " of " << shown.listed << ", in use " << shown.used << "}";
}

Shown shown(const Report& report) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
    EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    std::vector<nvmlProcessInfo_t> processes(8);
    unsigned count = 8;
    EXPECT_EQUAL(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data()), NVML_SUCCESS);
    nvmlMemory_v2_t memory{};
    memory.version = struct_version<nvmlMemory_v2_t>(2);
    EXPECT_EQUAL(nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_SUCCESS);
    Shown now;
    now.used = memory.used;
    for (unsigned i = 0; i < count; i++) {
        now.listed += processes[i].usedGpuMemory;
        if (processes[i].pid == static_cast<unsigned>(getpid()))
            now.own = processes[i].usedGpuMemory;
    }
    EXPECT_EQUAL(free_bytes(), memory.total - memory.reserved - memory.used);
    return now;
}

CUmemGenericAllocationHandle made(const Report& report) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp prop = exportable_memory();
    EXPECT_EQUAL(cuMemCreate(&handle, kSize, &prop, 0), CUDA_SUCCESS);
    return handle;
}

int exported(const Report& report, CUmemGenericAllocationHandle handle) {
    int file = -1;
    const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT_EQUAL(cuMemExportToShareableHandle(&file, handle, type, 0), CUDA_SUCCESS);
    return file;
}

CUmemGenericAllocationHandle imported(const Report& report, int file) {
    CUmemGenericAllocationHandle handle = 0;
    void* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(file));
    const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT_EQUAL(cuMemImportFromShareableHandle(&handle, descriptor, type), CUDA_SUCCESS);
    return handle;
}

/// How many files of memory lie beside the books.
size_t memory_files(const std::string& folder) {
    size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        count += file.path().filename().string().rfind("memory-", 0) == 0;
    return count;
}

}  // namespace

TEST_CASE("exported memory that its maker has released is on the GPU, and listed with no process") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Shown before = shown(report);
              const CUmemGenericAllocationHandle handle = made(report);
              const int file = exported(report, handle), second = exported(report, handle);
              EXPECT_EQUAL(shown(report), before.with(kSize, kSize));
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(shown(report), before.with(0, kSize));
              close(file);
              EXPECT_EQUAL(shown(report), before.with(0, kSize));
              const CUmemGenericAllocationHandle again = imported(report, second);
              EXPECT_EQUAL(shown(report), before.with(0, kSize));
              EXPECT_EQUAL(cuMemRelease(again), CUDA_SUCCESS);
              EXPECT_EQUAL(shown(report), before.with(0, kSize));
              close(second);
              EXPECT_EQUAL(shown(report), before);
          }) == "");
}

TEST_CASE("exported memory is listed with its maker as long as that has a handle or a mapping") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Shown before = shown(report);
              const CUmemGenericAllocationHandle handle = made(report);
              const int file = exported(report, handle);
              CUdeviceptr at = 0;
              EXPECT_EQUAL(cuMemAddressReserve(&at, kSize, 0, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemMap(at, kSize, 0, handle, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(shown(report), before.with(kSize, kSize));
              EXPECT_EQUAL(cuMemUnmap(at, kSize), CUDA_SUCCESS);
              EXPECT_EQUAL(shown(report), before.with(0, kSize));
              close(file);
              EXPECT_EQUAL(shown(report), before);
          }) == "");
}

TEST_CASE("exported memory that another process imported is listed with nobody once its maker is gone") {
    const bool killed = GENERATE(false, true);
    CHECK(in_child(one_t4, [&](const Report& report) {
              const Peer owner([&](const Peer& peer) {
                  use_device(report);
                  const CUmemGenericAllocationHandle handle = made(report);
                  const int file = exported(report, handle);
                  peer.send(1, file);
                  close(file);
                  peer.receive<int>();
                  EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
                  peer.send(1);
                  peer.receive<int>();
              });
              int file = -1;
              owner.receive<int>(&file);
              use_device(report);
              const Shown before = shown(report);
              const CUmemGenericAllocationHandle handle = imported(report, file);
              close(file);
              EXPECT_EQUAL(shown(report), before);
              uint64_t of_owner = before.listed - before.own, context = of_owner - kSize;
              if (killed) {
                  owner.kill();
              } else {
                  owner.send(1);
                  owner.receive<int>();
                  of_owner = kSize;
                  context = 0;
              }
              EXPECT_EQUAL(shown(report), (Shown{before.own, before.listed - of_owner, before.used - context}));
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(shown(report), (Shown{before.own, before.listed - of_owner, before.used - context - kSize}));
          }) == "");
}

TEST_CASE("exportable memory leaves no file behind, whoever is killed") {
    const Folder folder;
    const Environment environment = {{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_DIR", folder.path()}};
    const bool shared = GENERATE(false, true);
    CHECK(in_child(environment, [&](const Report& report) {
              const Peer killed([&](const Peer& peer) {
                  use_device(report);
                  const CUmemGenericAllocationHandle handle = made(report);
                  if (shared)
                      exported(report, handle);
                  peer.send(1);
                  peer.receive<int>();
              });
              killed.receive<int>();
              EXPECT_EQUAL(memory_files(folder.path()), 1U);
              killed.kill();
              use_device(report);
              EXPECT_EQUAL(memory_files(folder.path()), 0U);
              const CUmemGenericAllocationHandle handle = made(report), kept = made(report);
              if (shared)
                  close(exported(report, handle));
              EXPECT_EQUAL(memory_files(folder.path()), 2U);
              for (const auto& file : std::filesystem::directory_iterator(folder.path()))
                  EXPECT(file.status().permissions() == std::filesystem::perms(0600));
              EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
              EXPECT_EQUAL(memory_files(folder.path()), 1U);
              EXPECT(kept != 0);
              exit(0);
          }) == "");
    CHECK(memory_files(folder.path()) == 0);
}
