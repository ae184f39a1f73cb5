#include "virtual_gpu/nvml/nvml_gpu.h"

#include <cstring>

#include "policy/base/held_signals.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/nvml/nvml_query.h"

namespace cuslice {

namespace {

constinit bool initialised = false;

using ListProcesses = decltype(::nvmlDeviceGetComputeRunningProcesses_v3);

// Room for more processes than a GPU can serve; a list that is longer all the same counts as no answer.
Reading find_process(void* slot, nvmlDevice_t gpu, unsigned pid, std::uint64_t* bytes) {
    constexpr unsigned kMax = 512;
    struct List {
        nvmlProcessInfo_t processes[kMax];
    };
    const Scratch<List> all;
    if (!slot || !all) return Reading::failed;
    unsigned count = kMax;
    const auto list = detail::real_nvml_function(static_cast<ListProcesses*>(nullptr), slot);
    if (list(gpu, &count, all->processes) != NVML_SUCCESS) return Reading::failed;
    for (unsigned i = 0; i < count && i < kMax; i++) {
        const nvmlProcessInfo_t& process = all->processes[i];
        if (process.pid != pid) continue;
        if (process.usedGpuMemory == nvml::kValueNotAvailable) return Reading::failed;
        *bytes = process.usedGpuMemory;
        return Reading::ok;
    }
    return Reading::absent;
}

void* first_of(NvmlFunction newest, NvmlFunction older) {
    void* slot = physical_nvml_slot(newest);
    return slot ? slot : physical_nvml_slot(older);  // drivers before 510 have only _v2
}

// NVML's functions as nvml_query.h calls them.
struct PhysicalNvml {
#define CUSLICE_METHOD(name)                              \
    template <typename... Arguments>                      \
    nvmlReturn_t name(Arguments... arguments) const {     \
        return CUSLICE_PHYSICAL_NVML(name)(arguments...); \
    }
    CUSLICE_NVML_QUERY_FUNCTIONS(CUSLICE_METHOD)
#undef CUSLICE_METHOD
};

}  // namespace

// Several libraries in a process may initialise NVML; it counts them. We never shut it down, and the program can't shut
// down more often than it has initialised (shim/nvml/hooks_init.cpp). Threads that come at once may each initialise it,
// which needs no lock and does no harm.
bool nvml_initialise() {
    if (nvml_initialised()) return true;
    const HeldSignals held;
    const StartingReal starting;
    if (CUSLICE_PHYSICAL_NVML(nvmlInit_v2)() != NVML_SUCCESS) return false;
    __atomic_store_n(&initialised, true, __ATOMIC_RELEASE);
    return true;
}

bool nvml_initialised() { return __atomic_load_n(&initialised, __ATOMIC_ACQUIRE); }

bool NvmlGpu::open(const char* uuid) {
    const HeldSignals held;
    if (!nvml_initialise() || CUSLICE_PHYSICAL_NVML(nvmlDeviceGetHandleByUUID)(uuid, &handle_) != NVML_SUCCESS)
        handle_ = nullptr;
    return handle_ != nullptr;
}

Reading NvmlGpu::used_by_process(unsigned pid, std::uint64_t* bytes) const {
    if (!handle_) return Reading::failed;
    const HeldSignals held;
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
    GpuMemory memory;
    const HeldSignals held;
    if (!handle_ || query_memory(PhysicalNvml(), handle_, memory) != NVML_SUCCESS) return Reading::failed;
    *bytes = memory.used;
    if (total) *total = memory.total;
    return Reading::ok;
}

bool NvmlGpu::identity(GpuIdentity* identity) const {
    const HeldSignals held;
    return handle_ && query_identity(PhysicalNvml(), handle_, *identity);
}

bool NvmlGpu::name(char* text, unsigned size) const {
    const HeldSignals held;
    return handle_ && CUSLICE_PHYSICAL_NVML(nvmlDeviceGetName)(handle_, text, size) == NVML_SUCCESS;
}

NvmlGpus::NvmlGpus() {
    const HeldSignals held;
    nvmlDevice_t handles[kMax];
    if (nvml_initialise()) count_ = query_devices(PhysicalNvml(), handles);
    for (std::size_t i = 0; i < count_; i++) list_[i] = NvmlGpu(handles[i]);
}

bool nvml_one_model() {
    char first[96], other[96];
    const NvmlGpus gpus;
    for (const NvmlGpu& gpu : gpus.view()) {
        char(&name)[96] = &gpu == gpus.view().data() ? first : other;
        if (!gpu.name(name, sizeof(name)) || std::strcmp(first, name) != 0) return false;
    }
    return !gpus.view().empty();
}

}  // namespace cuslice
