// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "config/split/plan.h"
#include "virtual_gpu/driver/nvml.h"
#include "virtual_gpu/selection/program_gpus.h"

namespace cuslice {

// One of the GPUs that NVML shows where one is split. Its address is the handle that the program gets.
struct alignas(256) VirtualNvmlDevice {
    nvmlDevice_t physical = nullptr;  // the real library's handle; nvml_x86_64.S knows that it is the first member
    unsigned index = 0;
    VirtualPart part;
    uint64_t total = 0;                // bytes, of the physical GPU
    const GpuIdentity* gpu = nullptr;  // the physical one's
    GpuIdentity identity;              // a part has its own

    nvmlDevice_t handle() const { return reinterpret_cast<nvmlDevice_t>(const_cast<VirtualNvmlDevice*>(this)); }
};

// NVML as it would be with the virtual GPUs in place of the physical ones, as Split is for the driver.
//
// Where the settings split a GPU, something of ours is put before every function in NVML's table (driver/nvml_table.h):
// one of this folder's functions (driver/nvml_functions.def), or a few instructions that exchange the first argument if
// it is a handle of ours (nvml_x86_64.S). So the real library never sees one. Where nothing is split the table is the
// library's own, and nothing here runs.
//
//     program → stub or hook → this → the real NVML
class VirtualNvml {
  public:
    static constexpr size_t kMax = VirtualParts::kMax;

    // In place of publish_nvml() (driver/nvml_table.h): from now on calls come through here, so that nobody has got an
    // answer of the real library's yet. Once, after it was loaded.
    void install();
    // Sets the GPUs: once, after NVML is initialised. Until then NVML answers that it isn't.
    void open(const ProgramGpus& gpus, const VirtualParts& parts);
    bool is_open() const { return __atomic_load_n(&open_, __ATOMIC_ACQUIRE); }

    unsigned count() const { return count_; }
    // Null if there is no such GPU.
    const VirtualNvmlDevice* device(unsigned index) const;
    // Null if the handle isn't ours.
    const VirtualNvmlDevice* find(nvmlDevice_t handle) const;
    // The first of those that a GPU of the real library's is split into; null if there is none.
    const VirtualNvmlDevice* first_of(nvmlDevice_t physical) const;

  private:
    bool open_ = false;
    unsigned count_ = 0;
};

extern constinit VirtualNvml the_virtual_nvml;
inline VirtualNvml& virtual_nvml() { return the_virtual_nvml; }

}  // namespace cuslice
