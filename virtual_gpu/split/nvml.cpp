// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/nvml.h"
#include "config/split/identity.h"
#include "virtual_gpu/driver/nvml_table.h"

// nvml_x86_64.S knows both by their names.
extern "C" {
__attribute__((visibility("hidden")))
cuslice::VirtualNvmlDevice cuslice_virtual_nvml_devices[cuslice::VirtualNvml::kMax];
__attribute__((visibility("hidden"))) void cuslice_nvml_exchanges();
}
static_assert(sizeof(cuslice_virtual_nvml_devices) == 0x4000);
static_assert(offsetof(cuslice::VirtualNvmlDevice, physical) == 0);

namespace cuslice {

constinit VirtualNvml the_virtual_nvml;

// Defined in this folder.
namespace split_nvml {
#define CUSLICE_NVML_FUNCTION(name, split) CUSLICE_DECLARE_##split(name)
#define CUSLICE_DECLARE_exchange(name)
#define CUSLICE_DECLARE_own(name) extern decltype(::name) name;
#define CUSLICE_DECLARE_refused(name)
#include "virtual_gpu/driver/nvml_functions.def"
}  // namespace split_nvml

namespace {

constexpr size_t kExchangeSize = 16;

nvmlReturn_t refused() { return NVML_ERROR_NOT_SUPPORTED; }

// Where the library lacks a function, so do we.
void take_place(size_t i, void* ours) {
    if (physical_nvml_slot(i))
        __atomic_store_n(&cuslice_nvml_slots[i], ours, __ATOMIC_RELEASE);
}

}  // namespace

void VirtualNvml::install() {
    void* ours[kNvmlFunctionCount];
    for (size_t i = 0; i < kNvmlFunctionCount; i++)
        ours[i] = reinterpret_cast<unsigned char*>(&cuslice_nvml_exchanges) + i * kExchangeSize;
#define CUSLICE_NVML_FUNCTION(name, split) CUSLICE_PLACE_##split(name)
#define CUSLICE_PLACE_exchange(name)
#define CUSLICE_PLACE_own(name) \
    ours[static_cast<size_t>(NvmlFunction::name)] = reinterpret_cast<void*>(&split_nvml::name);
#define CUSLICE_PLACE_refused(name) ours[static_cast<size_t>(NvmlFunction::name)] = reinterpret_cast<void*>(&refused);
#include "virtual_gpu/driver/nvml_functions.def"
    for (size_t i = 0; i < kNvmlFunctionCount; i++)
        take_place(i, ours[i]);
}

void VirtualNvml::open(const ProgramGpus& gpus, const VirtualParts& parts) {
    for (const VirtualPart& part : parts.view()) {
        const GpuIdentity& gpu = gpus.identities[part.gpu];
        VirtualNvmlDevice& device = cuslice_virtual_nvml_devices[count_];
        device.physical = gpus.handles[part.gpu];
        device.index = count_++;
        device.part = part;
        device.total = gpus.totals[part.gpu];
        device.gpu = &gpu;
        device.identity = part.split ? identity_of_part(gpu, part.number()) : gpu;
    }
    __atomic_store_n(&open_, true, __ATOMIC_RELEASE);
}

const VirtualNvmlDevice* VirtualNvml::device(unsigned index) const {
    return index < count_ ? &cuslice_virtual_nvml_devices[index] : nullptr;
}

const VirtualNvmlDevice* VirtualNvml::find(nvmlDevice_t handle) const {
    const auto offset = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(cuslice_virtual_nvml_devices);
    const bool whole = offset % sizeof(VirtualNvmlDevice) == 0 && offset / sizeof(VirtualNvmlDevice) < count_;
    return whole ? &cuslice_virtual_nvml_devices[offset / sizeof(VirtualNvmlDevice)] : nullptr;
}

const VirtualNvmlDevice* VirtualNvml::first_of(nvmlDevice_t physical) const {
    const VirtualNvmlDevice* first = nullptr;
    for (unsigned i = 0; i < count_; i++) {
        const VirtualNvmlDevice& here = cuslice_virtual_nvml_devices[i];
        if (here.physical == physical && (!first || here.part.part < first->part.part))
            first = &here;
    }
    return first;
}

}  // namespace cuslice
