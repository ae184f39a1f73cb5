// SPDX-License-Identifier: Apache-2.0
// A made-up NVML of two GPUs and a MIG instance, and what is put before it: the first GPU is in two parts, of which the
// program counts the second one first.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "config/split/identity.h"
#include "tests/catch.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/split/nvml.h"

namespace cuslice::tests {

/// The real library's handle of a GPU, and the GPU of a handle; -1 if it isn't the library's.
inline nvmlDevice_t real_handle(int gpu) { return reinterpret_cast<nvmlDevice_t>((uintptr_t(gpu) + 1) << 12); }
inline int real_gpu(nvmlDevice_t handle) {
    for (int gpu = 0; gpu < 4; gpu++)
        if (real_handle(gpu) == handle)
            return gpu;
    return -1;
}

struct NvmlScene {
    static constexpr unsigned kSecondPart = 0, kWhole = 1, kFirstPart = 2, kInstance = 3, kCount = 4;

    NvmlScene() {
        the_virtual_nvml = {};
        failing = false;
        gpus = {};
        name(0, 0, "GPU-5f0e1d2c-1111-2222-3333-4444444444ab", "00000000:81:00.0");
        name(1, 1, "GPU-99999999-1111-2222-3333-444444444444", "00000000:C1:02.0");
        name(2, -1, "MIG-77777777-1111-2222-3333-444444444444", "00000001:05:00.0");
        for (const VirtualPart& part : {VirtualPart{0, 1, 2, true, 1000}, VirtualPart{1, 0, 1, false, 0},
                                        VirtualPart{0, 0, 2, true, 2000}, VirtualPart{2, 0, 1, false, 0}})
            REQUIRE(parts.add(part));
    }
    ~NvmlScene() {
        for (void*& slot : cuslice_physical_nvml_slots)
            slot = nullptr;
        for (void*& slot : cuslice_nvml_slots)
            slot = nullptr;
        the_virtual_nvml = {};
    }
    NvmlScene(const NvmlScene&) = delete;
    NvmlScene& operator=(const NvmlScene&) = delete;

    /// The library has this function, which is asked as this one; before install().
    template <typename F>
    static void put(NvmlFunction function, F* implementation) {
        cuslice_physical_nvml_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
    }
    static void install() { virtual_nvml().install(); }
    void open() const { virtual_nvml().open(gpus, parts); }

    static nvmlDevice_t handle(unsigned index) {
        const VirtualNvmlDevice* const device = virtual_nvml().device(index);
        REQUIRE(device);
        return device->handle();
    }
    static std::string uuid(unsigned index) { return virtual_nvml().device(index)->identity.uuid; }
    static std::string pci(unsigned index) { return virtual_nvml().device(index)->identity.pci; }

    void name(size_t place, int index, const char* uuid, const char* pci) {
        GpuIdentity& identity = gpus.identities[place];
        identity.index = index;
        std::strcpy(identity.uuid, uuid);
        std::strcpy(identity.pci, pci);
        gpus.totals[place] = 1000 * (place + 1);
        gpus.handles[place] = real_handle(static_cast<int>(place));
        gpus.count = place + 1;
    }

    VirtualParts parts;
    static inline ProgramGpus gpus;
    static inline bool failing = false;  // the library's functions, with UNKNOWN
};

}  // namespace cuslice::tests
