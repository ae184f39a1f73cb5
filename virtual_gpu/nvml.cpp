#include "virtual_gpu/nvml.h"

#include <cstdio>
#include <cstring>

#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice {

namespace {

using ListProcesses = nvml::functions::GetProcesses;

// Room for more processes than a GPU can serve; a list that is longer all the same counts as no answer.
Reading find_process(void* slot, nvml::Device gpu, unsigned pid, std::uint64_t* bytes) {
    constexpr unsigned kMost = 512;
    nvml::ProcessInfo processes[kMost];
    if (!slot) return Reading::failed;
    unsigned count = kMost;
    const auto list = detail::real_nvml_function(static_cast<ListProcesses*>(nullptr), slot);
    if (list(gpu, &count, processes) != nvml::SUCCESS) return Reading::failed;
    for (unsigned i = 0; i < count && i < kMost; i++) {
        if (processes[i].pid != pid) continue;
        if (processes[i].usedGpuMemory == nvml::VALUE_NOT_AVAILABLE) return Reading::failed;
        *bytes = processes[i].usedGpuMemory;
        return Reading::ok;
    }
    return Reading::absent;
}

void* first_of(NvmlFunction newest, NvmlFunction older) {
    void* slot = physical_nvml_slot(newest);
    return slot ? slot : physical_nvml_slot(older);  // drivers before 510 have only _v2
}

}  // namespace

// Several libraries in a process may initialise NVML; it counts them. We never shut it down. Threads that come at once
// may each initialise it, which needs no lock and does no harm.
bool nvml_initialise() {
    static bool done = false;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE)) return true;
    if (CUSLICE_PHYSICAL_NVML(nvmlInit_v2)() != nvml::SUCCESS) return false;
    __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    return true;
}

bool NvmlGpu::open(const char* uuid) {
    if (!nvml_initialise() || CUSLICE_PHYSICAL_NVML(nvmlDeviceGetHandleByUUID)(uuid, &handle_) != nvml::SUCCESS)
        handle_ = nullptr;
    return handle_ != nullptr;
}

Reading NvmlGpu::used_by_process(unsigned pid, std::uint64_t* bytes) const {
    if (!handle_) return Reading::failed;
    const Reading compute = find_process(first_of(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3,
                                                  NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v2),
                                         handle_, pid, bytes);
    if (compute != Reading::absent) return compute;
    // A client of MPS is in a list of its own.
    const Reading mps = find_process(first_of(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3,
                                              NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v2),
                                     handle_, pid, bytes);
    return mps == Reading::ok ? Reading::ok : Reading::absent;
}

Reading NvmlGpu::used_by_all(std::uint64_t* bytes, std::uint64_t* total) const {
    nvml::Memory memory;
    if (!handle_ || CUSLICE_PHYSICAL_NVML(nvmlDeviceGetMemoryInfo)(handle_, &memory) != nvml::SUCCESS)
        return Reading::failed;
    *bytes = memory.used;
    if (total) *total = memory.total;
    return Reading::ok;
}

bool NvmlGpu::identity(GpuIdentity* identity) const {
    char uuid[nvml::DEVICE_UUID_V2_BUFFER_SIZE] = {};
    nvml::PciInfo pci{};
    unsigned index = 0;
    if (!handle_ || CUSLICE_PHYSICAL_NVML(nvmlDeviceGetIndex)(handle_, &index) != nvml::SUCCESS ||
        CUSLICE_PHYSICAL_NVML(nvmlDeviceGetUUID)(handle_, uuid, sizeof(uuid)) != nvml::SUCCESS ||
        CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfo_v3)(handle_, &pci) != nvml::SUCCESS)
        return false;
    identity->index = static_cast<int>(index);
    const auto fits = [](int length, std::size_t size) {
        return length >= 0 && static_cast<std::size_t>(length) < size;
    };
    return fits(std::snprintf(identity->uuid, sizeof(identity->uuid), "%s", uuid), sizeof(identity->uuid)) &&
           fits(std::snprintf(identity->pci, sizeof(identity->pci), "%s", pci.busId), sizeof(identity->pci));
}

bool NvmlGpu::name(char* text, unsigned size) const {
    return handle_ && CUSLICE_PHYSICAL_NVML(nvmlDeviceGetName)(handle_, text, size) == nvml::SUCCESS;
}

unsigned nvml_gpu_count() {
    unsigned count = 0;
    return nvml_initialise() && CUSLICE_PHYSICAL_NVML(nvmlDeviceGetCount_v2)(&count) == nvml::SUCCESS ? count : 0;
}

NvmlGpu nvml_gpu(unsigned index) {
    nvml::Device handle = nullptr;
    if (CUSLICE_PHYSICAL_NVML(nvmlDeviceGetHandleByIndex_v2)(index, &handle) != nvml::SUCCESS) handle = nullptr;
    return NvmlGpu(handle);
}

bool nvml_one_model() {
    char first[96], other[96];
    if (!nvml_gpu(0).name(first, sizeof(first))) return false;
    for (unsigned i = 1, count = nvml_gpu_count(); i < count; i++)
        if (!nvml_gpu(i).name(other, sizeof(other)) || std::strcmp(first, other) != 0) return false;
    return true;
}

}  // namespace cuslice
