// SPDX-License-Identifier: Apache-2.0
#include "shim/process/process.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "config/container_group.h"
#include "config/drop_in.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/split/identity.h"
#include "policy/base/cancellation.h"
#include "policy/base/held_signals.h"
#include "shim/process/drop_in.h"
#include "shim/process/loading.h"
#include "shim/process/toml_module.h"
#include "virtual_gpu/driver/load.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/own_folder.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/selection/host_environment.h"
#include "virtual_gpu/split/dispatch.h"
#include "virtual_gpu/split/nvml.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

namespace {

// Raw storage, as the GPUs' is.
alignas(Settings) unsigned char settings_storage[sizeof(Settings)];

// The folder of the driver in use, beside which its NVML lies if it is not the system's.
bool folder_in(const char* path, char* folder, size_t size) {
    const char* slash = std::strrchr(path, '/');
    if (!slash || static_cast<size_t>(slash - path) >= size)
        return false;
    std::memcpy(folder, path, static_cast<size_t>(slash - path));
    folder[slash - path] = '\0';
    return true;
}

}  // namespace

constinit Process the_process;
alignas(VirtualGpu) unsigned char Process::gpu_storage_[kMaxGpus * sizeof(VirtualGpu)];
alignas(PhysicalGpu) unsigned char Process::physical_gpu_storage_[kMaxGpus * sizeof(PhysicalGpu)];

const Settings& Process::settings() const { return *reinterpret_cast<const Settings*>(settings_storage); }

bool Process::read_settings() {
    auto& settings = *new (settings_storage) Settings;
    const HostEnvironment environment;
    if (!load_in_program(settings, environment.lines(), open_toml_module, SystemPlaces{}, error_))
        return false;
    if (is_drop_in() && !load_drop_in(settings, environment.lines(), error_))
        return false;
    gpu_state().sharing = plan_sharing(settings, environment.lines());
    may_cache_ = chooses_cache(settings);
    shares_time_ = cuslice::shares_time(settings);
    return true;
}

Readiness Process::load() {
    if (const Readiness known = readiness(); known != Readiness::not_yet)
        return known;
    const HeldSignals held;  // the loader has locks of its own
    Loading loading(mutex_);
    if (const Readiness known = readiness(); known != Readiness::not_yet)
        return known;
    pthread_atfork(before_fork, after_fork, after_fork_in_child);

    Readiness answer = Readiness::bad_configuration;
    if (read_settings()) {
        static char path[4096];  // with the lock held; constructors of the driver's want the stack
        const char* explicit_path = nullptr;
        if (find(settings(), Key::fake)) {
            // The fake GPU's driver lies in a folder beside this library; `fake` wins over `driver`.
            path_in_own_folder("/fake/libcuda.so.1", path, sizeof(path));
            explicit_path = path;
        } else if (const Entry* driver = find(settings(), Key::driver)) {
            std::snprintf(path, sizeof(path), "%.*s", static_cast<int>(driver->value.size()), driver->value.data());
            explicit_path = path;
        }
        past_us_ = find_opened_past_us("libcuda.so.1", path_past_us_, sizeof(path_past_us_));
        answer = load_driver(explicit_path, driver_text_, sizeof(driver_text_), &driver_found_) ? Readiness::ready
                                                                                                : Readiness::no_driver;
        connect();
        if (answer == Readiness::ready && splits_any(settings()))
            install_split();
    }
    // Before others know of it, so that whoever refuses the settings then takes it back.
    if (answer == Readiness::ready)
        features_.fetch_or(kReady, std::memory_order_release);
    readiness_.store(answer, std::memory_order_release);
    return answer;
}

// The library is opened without a lock: what its constructors do is not ours to hold others up for.
bool Process::load_nvml() {
    if (const int known = nvml_.load(std::memory_order_acquire))
        return known == 1;
    if (load() == Readiness::bad_configuration)
        return false;
    char folder[512], text[512];
    const bool chosen = find(settings(), Key::driver) || find(settings(), Key::fake);
    const bool beside = (chosen || readiness() == Readiness::ready) && folder_in(driver_text_, folder, sizeof(folder));
    const HeldSignals held;
    void* const library = open_nvml(beside ? folder : nullptr, chosen, text, sizeof(text));
    const Loading loading(mutex_);
    if (const int known = nvml_.load(std::memory_order_acquire))
        return known == 1;
    if (library) {
        ::cuslice::load_nvml(library);
        splits_any(settings()) ? virtual_nvml().install() : publish_nvml();
    }
    nvml_.store(library ? 1 : 2, std::memory_order_release);
    return library;
}

bool Process::start_nvml() {
    return load_nvml() && nvml_initialise() && (!splits_any(settings()) || open_virtual_nvml());
}

// CUDA may not have started, and may never: NVML alone says what there is.
bool Process::open_virtual_nvml() {
    if (virtual_nvml().is_open())
        return true;
    struct Found {
        ProgramGpus gpus;
        VirtualParts parts;
        ConfigError error;
    };
    const Scratch<Found> found;
    if (!found)
        return false;
    ProgramGpus& gpus = found->gpus;
    const HostEnvironment environment;
    const bool fits = gpus.read(settings(), environment.lines(), found->error) &&
                      plan_split(settings(), gpus.all(), {gpus.totals, gpus.count}, found->parts, found->error);
    const Loading loading(mutex_);
    if (virtual_nvml().is_open())
        return true;
    if (!fits)
        return fail_closed(found->error);
    program_gpus_ = gpus;
    virtual_nvml().open(program_gpus_, found->parts);
    return true;
}

Slice Process::slice_of(const GpuIdentity& identity, uint64_t total) const {
    Slice slice;
    const Amount amount = amount_for(settings(), identity, total);
    slice.limited = amount.limited;
    slice.limit = amount.bytes;
    slice.plus_context = amount.plus_context;
    slice.origin.assign(amount.origin);
    if (amount.limited)
        slice.job_limit = amount.bytes;
    unsigned outwards = 0;
    for (uint64_t& limit : slice.outer_limits.bytes)
        limit = outer_limit_for(settings(), outwards++, identity, total).value_or(ledger::kNoLimitBytes);
    slice.in_group = !gpu_state().sharing.group.empty();
    if (const auto group = group_limit_for(settings(), identity); group && slice.in_group) {
        slice.group_limit = std::min(*group, total);
        slice.group_origin.assign(find(settings(), Key::group_limit, identity)->origin);
        if (!slice.limited || slice.group_limit < slice.limit)
            slice.limit = slice.group_limit;
        if (!slice.limited)
            slice.origin.assign(slice.group_origin);
        slice.limited = true;
    } else if (slice.limited && shares_container(settings())) {
        slice.group_limit = slice.limit;
        slice.group_origin.assign(slice.origin);
    } else if (slice.in_group) {
        slice.group_origin.assign("the group");
    }
    if (const auto rule = shared_limit_for(settings(), identity, total)) {
        slice.rule_limit = rule->bytes;
        slice.rule_origin.assign(rule->origin);
    }
    slice.ceiling_for_all = ceiling_for_all(settings(), identity, total).value_or(ledger::kNoLimitBytes);
    const AllocatorChoice choice = allocator_for(settings(), identity);
    slice.bound = slice.limited || choice.mode != AllocatorMode::direct;
    if (slice.in_group && !slice.limited) {
        // Counted, as the group may have a limit, or come to have one.
        slice.limited = true;
        slice.limit = total;
        slice.origin.assign(slice.group_origin);
    }
    slice.allocator = choice.mode;
    slice.free = choice.free;
    slice.idle_release = choice.idle_release;
    if (const auto time = share_for(settings(), identity))
        slice.time = {.weight = time->weight, .cap = time->cap};
    if (choice.mode != AllocatorMode::direct && !slice.limited) {
        // All there is, none of it set aside; counted all the same.
        slice.limited = slice.takes_all = true;
        slice.limit = total;
        slice.origin.assign(choice.origin);
    }
    if (const auto own = headroom_for(settings(), identity)) {
        slice.own_headroom = true;
        slice.headroom = *own;
    }
    return slice;
}

Slice Process::slice_of(const VirtualPart& part, const GpuIdentity& physical, uint64_t total) const {
    Slice slice = slice_of(physical, total);
    if (!part.split)
        return slice;
    slice.limited = true;
    slice.bound = true;
    slice.limit = slice.job_limit = part.bytes;
    slice.plus_context = part.plus_context;
    slice.group_limit = std::min(slice.group_limit, part.bytes);
    // A whole GPU that nothing limits sets nothing aside; a part has a limit.
    const auto own = headroom_for(settings(), physical);
    slice.own_headroom = own.has_value();
    slice.takes_all = false;
    slice.headroom = own.value_or(0);
    slice.origin.assign(find(settings(), Key::split, physical)->origin);
    return slice;
}

bool Process::identify(CUdevice device, GpuIdentity* identity) const {
    CUuuid uuid{};
    if (CUSLICE_PHYSICAL(cuDeviceGetUuid_v2)(&uuid, device) != CUDA_SUCCESS &&
        CUSLICE_PHYSICAL(cuDeviceGetUuid)(&uuid, device) != CUDA_SUCCESS)
        return false;
    char name[256] = "";
    CUSLICE_PHYSICAL(cuDeviceGetName)(name, sizeof(name), device);
    write_uuid(uuid.bytes, name, identity->uuid);
    if (CUSLICE_PHYSICAL(cuDeviceGetPCIBusId)(identity->pci, sizeof(identity->pci), device) != CUDA_SUCCESS)
        identity->pci[0] = '\0';
    return true;
}

// With the lock held. The driver may have started by now, and would serve a program that doesn't look at what cuInit
// returned.
bool Process::fail_closed(const ConfigError& error) {
    if (readiness() == Readiness::bad_configuration)
        return false;
    error_ = error;
    driver_refused.store(true, std::memory_order_relaxed);
    readiness_.store(Readiness::bad_configuration, std::memory_order_release);
    remove_features(kReady);
    return false;
}

bool Process::no_memory() {
    ConfigError error;
    error.set("cuslice", "there is no memory to list GPUs in");
    const Loading loading(mutex_);
    return fail_closed(error);
}

VirtualGpu* Process::gpu_of(CUdevice device) { return device >= 0 && device < gpu_count() ? &gpu(device) : nullptr; }

VirtualGpu* Process::find_gpu(const char* uuid) {
    for (VirtualGpu& gpu : gpus())
        if (std::strcmp(gpu.identity().uuid, uuid) == 0)
            return &gpu;
    return nullptr;
}

}  // namespace cuslice
