// SPDX-License-Identifier: Apache-2.0
// GPUs of which a made-up NVML says what this process and everybody has.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/virtual_gpu/gpu/made_up_nvml.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice::tests {

/// Caches that keep so many bytes of each GPU, and write down what is asked of them.
class KeptOfGpus : public MemoryReclaimer {
  public:
    using Asked = std::vector<std::pair<int, uint64_t>>;  // the GPU's ordinal, and bytes
    uint64_t trim(VirtualGpu& gpu, uint64_t bytes, const ContextCache*) override {
        asked.emplace_back(gpu.ordinal(), bytes);
        const uint64_t given = std::min(bytes, kept[gpu.ordinal()]);
        kept[gpu.ordinal()] -= given;
        gpu.budget().release(given);
        machine.process -= given;
        machine.all -= given;
        return given;
    }
    void top_up(VirtualGpu& gpu) override { topped_up.push_back(gpu.ordinal()); }
    uint64_t unused(const VirtualGpu& gpu) const override {
        const auto at = kept.find(gpu.ordinal());
        return at == kept.end() ? 0 : at->second;
    }
    std::map<int, uint64_t> kept;
    Asked asked;
    std::vector<int> topped_up;
};
inline KeptOfGpus kept_of_gpus;

/// A slice of so many bytes, of which so many are set aside for the driver.
inline Slice measured_slice(uint64_t limit, uint64_t headroom, AllocatorMode mode = AllocatorMode::growth) {
    Slice slice;
    slice.limited = slice.own_headroom = true;
    slice.limit = limit;
    slice.headroom = headroom;
    slice.allocator = mode;
    return slice;
}

/// NVML of a GPU of 16 GiB, which lists this process if `machine.listed`.
struct MeasuredMachine {
    MeasuredMachine() {
        machine = {};
        kept_of_gpus = {};
        put(NvmlFunction::nvmlInit_v2, init);
        put(NvmlFunction::nvmlDeviceGetHandleByUUID, by_uuid);
        put(
            NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3,
            +[](nvmlDevice_t, unsigned* count, nvmlProcessInfo_t* infos) -> nvmlReturn_t {
                machine.readings++;
                *count = machine.listed;
                infos[0].pid = static_cast<unsigned>(getpid());
                infos[0].usedGpuMemory = machine.process;
                return NVML_SUCCESS;
            });
        put(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3, no_processes);
        put(NvmlFunction::nvmlDeviceGetMemoryInfo, memory);
        put(
            NvmlFunction::nvmlSystemGetDriverVersion, +[](char* text, unsigned size) -> nvmlReturn_t {
                snprintf(text, size, "580.95.05");
                return NVML_SUCCESS;
            });
        GpuState& state = gpu_state();
        state.reclaimer = &kept_of_gpus;
        state.start_nvml = [] { return true; };
        state.look_for_ended = [](VirtualGpu&) {};
        physical->open({}, 16384 * kMiB);
    }
    ~MeasuredMachine() {
        using enum NvmlFunction;
        for (const NvmlFunction function :
             {nvmlInit_v2, nvmlDeviceGetHandleByUUID, nvmlDeviceGetComputeRunningProcesses_v3,
              nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetMemoryInfo, nvmlSystemGetDriverVersion})
            put(function, static_cast<void (*)()>(nullptr));
    }
    MeasuredMachine(const MeasuredMachine&) = delete;
    MeasuredMachine& operator=(const MeasuredMachine&) = delete;

    std::unique_ptr<VirtualGpu> open(int ordinal, const Slice& slice) {
        auto gpu = std::make_unique<VirtualGpu>();
        gpu->open(ordinal, {}, *physical, "made up", slice);
        return gpu;
    }
    /// The driver takes, or gives back, so much for this process.
    static void take(int64_t bytes) {
        machine.process += static_cast<uint64_t>(bytes);
        machine.all += static_cast<uint64_t>(bytes);
    }
    /// An allocation, which NVML sees too.
    static void allocate(VirtualGpu& gpu, uint64_t bytes) {
        REQUIRE(gpu.reserve_at_once(bytes));
        take(static_cast<int64_t>(bytes));
        gpu.budget().commit();
    }

    std::unique_ptr<PhysicalGpu> physical = std::make_unique<PhysicalGpu>();
};

}  // namespace cuslice::tests
