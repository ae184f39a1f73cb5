// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/nvml/nvml_gpu.h"

#include <algorithm>
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
constexpr unsigned kMaxProcesses = 512;

// Calls f(process) for each that a function of NVML's lists, until f returns true. False if there is no list.
template <typename F>
bool each_process(void* slot, nvmlDevice_t gpu, F f) {
    struct List {
        nvmlProcessInfo_t processes[kMaxProcesses];
    };
    const Scratch<List> all;
    if (!slot || !all)
        return false;
    unsigned count = kMaxProcesses;
    const auto list = detail::real_nvml_function(static_cast<ListProcesses*>(nullptr), slot);
    if (list(gpu, &count, all->processes) != NVML_SUCCESS)
        return false;
    for (unsigned i = 0; i < count && i < kMaxProcesses; i++)
        if (f(all->processes[i]))
            break;
    return true;
}

Reading find_process(void* slot, nvmlDevice_t gpu, unsigned pid, uint64_t* bytes) {
    Reading found = Reading::absent;
    const bool listed = each_process(slot, gpu, [&](const nvmlProcessInfo_t& process) {
        if (process.pid != pid)
            return false;
        const bool known = process.usedGpuMemory != nvml::kValueNotAvailable;
        if (known)
            *bytes = process.usedGpuMemory;
        found = known ? Reading::ok : Reading::failed;
        return true;
    });
    return listed ? found : Reading::failed;
}

// Everybody who is listed, once each: a process may compute and draw, and is in two lists then with the same figure.
struct Everybody {
    struct One {
        unsigned pid;
        uint64_t bytes;
    };
    One list[kMaxProcesses];
    unsigned count = 0;

    void add(const nvmlProcessInfo_t& process) {
        const uint64_t bytes = process.usedGpuMemory == nvml::kValueNotAvailable ? 0 : process.usedGpuMemory;
        for (unsigned i = 0; i < count; i++)
            if (list[i].pid == process.pid)
                return void(list[i].bytes = std::max(list[i].bytes, bytes));
        if (count < kMaxProcesses)
            list[count++] = {process.pid, bytes};
    }
    bool has(unsigned pid) const {
        for (unsigned i = 0; i < count; i++)
            if (list[i].pid == pid)
                return true;
        return false;
    }
    uint64_t bytes() const {
        uint64_t sum = 0;
        for (unsigned i = 0; i < count; i++)
            sum += list[i].bytes;
        return sum;
    }
};

void* first_of(NvmlFunction newest, NvmlFunction older) {
    void* slot = physical_nvml_slot(newest);
    return slot ? slot : physical_nvml_slot(older);  // drivers before 510 have only _v2
}

// False if those that compute can't be had. Where there are no other lists, nobody is in them.
bool list_everybody(nvmlDevice_t gpu, Everybody* all) {
    using enum NvmlFunction;
    all->count = 0;
    const auto add = [&](const nvmlProcessInfo_t& process) {
        all->add(process);
        return false;
    };
    const auto list = [&](NvmlFunction newest, NvmlFunction older) {
        return each_process(first_of(newest, older), gpu, add);
    };
    if (!list(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2))
        return false;
    list(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses_v2);
    list(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v2);
    return true;
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
    if (nvml_initialised())
        return true;
    const HeldSignals held;
    const StartingReal starting;
    if (CUSLICE_PHYSICAL_NVML(nvmlInit_v2)() != NVML_SUCCESS)
        return false;
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

Reading NvmlGpu::used_by_process(unsigned pid, uint64_t* bytes) const {
    if (!handle_)
        return Reading::failed;
    const HeldSignals held;
    const Reading compute = find_process(first_of(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3,
                                                  NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v2),
                                         handle_, pid, bytes);
    if (compute != Reading::absent)
        return compute;
    // A client of MPS is in a list of its own.
    const Reading mps = find_process(first_of(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3,
                                              NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v2),
                                     handle_, pid, bytes);
    return mps == Reading::ok ? Reading::ok : Reading::absent;
}

Reading NvmlGpu::used_by_all(uint64_t* bytes, uint64_t* total) const {
    GpuMemory memory;
    const HeldSignals held;
    if (!handle_ || query_memory(PhysicalNvml(), handle_, memory) != NVML_SUCCESS)
        return Reading::failed;
    *bytes = memory.used;
    if (total)
        *total = memory.total;
    return Reading::ok;
}

bool NvmlGpu::unlisted(unsigned pid, Unlisted* now) const {
    constexpr int kTries = 4;
    const HeldSignals held;
    const Scratch<Everybody> all;
    if (!handle_ || !all || !list_everybody(handle_, &*all))
        return false;
    for (int i = 0; i < kTries; i++) {
        const uint64_t before = all->bytes();
        uint64_t used = 0;
        if (used_by_all(&used) != Reading::ok || !list_everybody(handle_, &*all))
            return false;
        const uint64_t listed = all->bytes();
        if (listed != before)
            continue;
        *now = {used - std::min(used, listed), all->has(pid)};
        return true;
    }
    return false;
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
    if (nvml_initialise())
        count_ = query_devices(PhysicalNvml(), handles);
    for (size_t i = 0; i < count_; i++)
        list_[i] = NvmlGpu(handles[i]);
}

bool nvml_one_model() {
    char first[96], other[96];
    const NvmlGpus gpus;
    for (const NvmlGpu& gpu : gpus.view()) {
        char(&name)[96] = &gpu == gpus.view().data() ? first : other;
        if (!gpu.name(name, sizeof(name)) || std::strcmp(first, name) != 0)
            return false;
    }
    return !gpus.view().empty();
}

}  // namespace cuslice
