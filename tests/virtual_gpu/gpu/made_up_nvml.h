// SPDX-License-Identifier: Apache-2.0
#pragma once
// An NVML and a CUDA that say what a test wants of one GPU's memory.
#include <cstdint>
#include <functional>

#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice::tests {

constexpr uint64_t kMiB = 1 << 20;
constexpr unsigned kPid = 4711;

struct MadeUpNvml {
    bool there = true, listed = false, answers = true;
    uint64_t process = 0, all = 0;
    int readings = 0;
    std::function<void()> meanwhile = [] {};  // what other threads do while it is asked
};
inline MadeUpNvml machine;

inline nvmlReturn_t init() { return NVML_SUCCESS; }

inline nvmlReturn_t by_uuid(const char*, nvmlDevice_t* device) {
    *device = reinterpret_cast<nvmlDevice_t>(&machine);
    return machine.there ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

inline nvmlReturn_t processes(nvmlDevice_t, unsigned* count, nvmlProcessInfo_t* infos) {
    machine.readings++;
    if (!machine.answers)
        return NVML_ERROR_UNKNOWN;
    *count = machine.listed ? 2 : 1;
    infos[0].pid = kPid + 1;
    infos[0].usedGpuMemory = 77 * kMiB;
    infos[1].pid = kPid;
    infos[1].usedGpuMemory = machine.process;
    machine.meanwhile();
    return NVML_SUCCESS;
}

inline nvmlReturn_t no_processes(nvmlDevice_t, unsigned* count, nvmlProcessInfo_t*) {
    *count = 0;
    return NVML_SUCCESS;
}

inline nvmlReturn_t memory(nvmlDevice_t, nvmlMemory_t* info) {
    info->total = 16384 * kMiB;
    info->used = machine.all;
    info->free = info->total - info->used;
    return machine.answers ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

inline uint64_t shown_free = 0;  // by the CUDA API; 0: no context
inline bool free_memory(uint64_t* free, uint64_t* total) {
    *free = shown_free;
    *total = 16384 * kMiB;
    return shown_free != 0;
}

template <typename F>
void put(NvmlFunction function, F* implementation) {
    cuslice_physical_nvml_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

}  // namespace cuslice::tests
