// SPDX-License-Identifier: Apache-2.0
// The GPUs that the program sees: chosen by the settings, split, and opened.
#include <algorithm>
#include <cstring>
#include <new>

#include "config/load.h"
#include "config/resolve.h"
#include "config/split/identity.h"
#include "shim/process/loading.h"
#include "shim/process/process.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/selection/host_environment.h"
#include "virtual_gpu/selection/visible_devices.h"
#include "virtual_gpu/split/dispatch.h"
#include "virtual_gpu/split/nvml.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

// All GPUs of the host as NVML has them, in PCI order.
size_t Process::list_gpus(std::span<GpuIdentity> all) {
    size_t count = 0;
    if (start_nvml())
        for (const NvmlGpus gpus; const NvmlGpu& gpu : gpus.view())
            if (count < all.size() && gpu.identity(&all[count]))
                count++;
    return count;
}

bool Process::choose_gpus(VisibleText& list, bool* set) {
    if (gpus_open_.load(std::memory_order_acquire))
        return true;
    struct Host {
        ConfigError error;
        GpuIdentity all[kMaxGpus];
    };
    const Scratch<Host> host;
    if (!host)
        return no_memory();
    const size_t count = resolves_gpus(settings(), HostEnvironment().lines()) ? list_gpus(host->all) : 0;
    if (readiness() == Readiness::bad_configuration)
        return false;
    const std::span<const GpuIdentity> all(host->all, count);
    if (split().installed() ? list_physical(all, list, set, host->error) : choose_visible(all, host->error))
        return true;
    const Loading loading(mutex_);
    return fail_closed(host->error);
}

// Works out from the variable's current value which GPUs it is to name, and starts over if another thread has changed
// it meanwhile.
bool Process::choose_visible(std::span<const GpuIdentity> all, ConfigError& error) {
    for (;;) {
        const Scratch<VisibleDevices> visible;
        if (!visible)
            return error.set("cuslice", "there is no memory to choose GPUs in");
        if (!visible->decide(settings(), all, HostEnvironment().lines(), error))
            return false;
        const Loading loading(mutex_);
        if (gpus_open_.load(std::memory_order_relaxed) || visible->apply())
            return true;
    }
}

// Lists the GPUs that NVML already shows as split, so that the driver brings up the same ones: GPUs can be chosen in
// more than one way.
bool Process::list_physical(std::span<const GpuIdentity> all, VisibleText& list, bool* set, ConfigError& error) {
    if (!start_nvml()) {
        if (readiness() == Readiness::bad_configuration) {
            error = error_;
            return false;
        }
        return physical_list(settings(), all, HostEnvironment().lines(), list, set, error);
    }
    *set = program_gpus_.chosen;
    for (const GpuIdentity& gpu : program_gpus_.all())
        if (*set)
            append_visible(list, gpu.uuid);
    return true;
}

// Indices count all GPUs of the host in PCI order, whatever CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER make of them
// here, so only NVML can tell which GPU is meant. It is loaded only if somebody names a GPU.
bool Process::check_selectors(std::span<GpuIdentity> visible, ConfigError& error) {
    const std::span<const Entry> entries = settings().entries();
    if (std::all_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.selector.is_general(); }))
        return true;

    struct Host {
        GpuIdentity all[kMaxGpus];
    };
    const Scratch<Host> host;
    const size_t count = host ? list_gpus(host->all) : 0;
    if (count == 0) {
        for (const Entry& entry : entries)
            if (entry.selector.kind == GpuSelector::Kind::index)
                return error.set(
                    entry.origin, entry.selector.text,
                    "GPUs can't be told by their index where NVML is missing; name it by UUID (GPU-…) or PCI id");
        return check_against(settings(), visible, false, error);
    }
    const std::span<const GpuIdentity> all(host->all, count);
    for (GpuIdentity& mine : visible)
        for (const GpuIdentity& known : all)
            if (std::strcmp(known.uuid, mine.uuid) == 0)
                mine = known;
    return check_against(settings(), all, true, error);
}

// Decides which GPUs the program sees: the driver's own, unless some are split.
bool Process::choose_parts(FoundGpus& found, ConfigError& error) {
    if (!split().installed()) {
        for (size_t i = 0; i < found.count; i++)
            found.parts.add({.gpu = static_cast<uint8_t>(i)});
        return true;
    }
    const bool listed = start_nvml();
    if (readiness() == Readiness::bad_configuration) {
        error = error_;
        return false;
    }
    if (!(listed ? split_visible(found, error)
                 : plan_split(settings(), found.gpus(), found.sizes(), found.parts, error)))
        return false;
    struct Virtual {
        GpuIdentity identities[VirtualParts::kMax];
    };
    const Scratch<Virtual> scratch;
    if (!scratch)
        return error.set("cuslice", "there is no memory to list GPUs in");
    GpuIdentity* const identities = scratch->identities;
    size_t count = 0;
    for (const VirtualPart& part : found.parts.view())
        identities[count++] = identity_of_virtual(part, found.gpus());
    const HostEnvironment environment;
    const auto value = [&](std::string_view name) { return variable(environment.lines(), name); };
    const std::string_view list = own_list(value(kChosenVariable), value(kCudaVisible));
    found.named_twice = names_gpu_twice(list, {identities, count});
    found.parts = visible_parts({identities, count}, found.parts, list);
    return true;
}

// NVML shows parts of the program's GPUs, and CUDA the same in the same order: those whose GPU the driver has. The
// driver's totals are what an allocation can come from.
bool Process::split_visible(FoundGpus& found, ConfigError& error) {
    const ProgramGpus& program = program_gpus_;
    uint64_t known[ProgramGpus::kMax];
    int ordinals[ProgramGpus::kMax];
    for (size_t place = 0; place < program.count; place++) {
        known[place] = program.totals[place];
        ordinals[place] = -1;
    }
    for (size_t i = 0; i < found.count; i++) {
        const int place = program.find(found.identities[i].uuid);
        if (place < 0 && !program.chosen)
            return error.set("split", found.identities[i].uuid,
                             "NVML doesn't list this GPU, so its place among the virtual ones is not known: choose "
                             "GPUs with gpus");
        if (place < 0)
            continue;
        found.identities[i] = program.identities[place];
        known[place] = found.totals[i];
        ordinals[place] = static_cast<int>(i);
    }
    VirtualParts all;
    if (!plan_split(settings(), program.all(), {known, program.count}, all, error))
        return false;
    for (VirtualPart part : all.view()) {
        const int ordinal = ordinals[part.gpu];
        part.gpu = static_cast<uint8_t>(ordinal);
        if (ordinal >= 0)
            found.parts.add(part);
    }
    return true;
}

namespace {

// Fills in what a recording's row says of the GPU.
void describe_row(int ordinal, trace::Row& row) {
    VirtualGpu& gpu = process().gpu(ordinal);
    row.gpu = gpu.identity().uuid;
    if (!gpu.bound())
        return;
    row.limit = gpu.limit();
    row.held = gpu.budget().used();
}

}  // namespace

void Process::open_gpu(int ordinal, const VirtualPart& part, const FoundGpus& found) {
    const GpuIdentity& identity = found.identities[part.gpu];
    const uint64_t total = found.totals[part.gpu];
    char name[96] = "";
    CUSLICE_PHYSICAL(cuDeviceGetName)(name, sizeof(name), part.gpu);
    PhysicalGpu& physical = reinterpret_cast<PhysicalGpu*>(physical_gpu_storage_)[part.gpu];
    const std::span<const VirtualPart> parts = found.parts.view();
    uint64_t together = 0;
    for (const VirtualPart& other : parts)
        together += other.gpu == part.gpu ? other.bytes : 0;
    const VirtualPart& first = *std::ranges::find(parts, part.gpu, &VirtualPart::gpu);
    if (&first == &part) {
        (new (&physical) PhysicalGpu)->open(identity, total);
        if (part.split)
            physical.split(slice_of(identity, total), together, part.plus_context);
    }
    const GpuIdentity shown = identity_of_virtual(part, found.identities);
    Slice slice = slice_of(part, identity, total);
    if (gpu_state().lowered_limits[ordinal].is_set() && !slice.limited)
        slice.count_all(total, kSetByProgram);
    (new (&gpu(ordinal)) VirtualGpu)->open(ordinal, shown, physical, name, slice);
}

// Finds the GPUs, as the driver and NVML describe them.
bool Process::find_gpus(FoundGpus& found, ConfigError& error) {
    int count = 0;
    if (CUSLICE_PHYSICAL(cuDeviceGetCount)(&count) != CUDA_SUCCESS)
        count = 0;
    if (count > kMaxGpus)
        return error.set("cuslice", "this process sees more than 64 GPUs, which is more than cuslice can limit");
    found.count = static_cast<size_t>(count);
    for (int i = 0; i < count; i++) {
        identify(i, &found.identities[i]);
        // A GPU whose memory isn't known has none to give where there is a limit.
        size_t total = 0;
        if (CUSLICE_PHYSICAL(cuDeviceTotalMem_v2)(&total, i) == CUDA_SUCCESS)
            found.totals[i] = total;
    }
    return check_selectors(found.gpus(), error) && choose_parts(found, error);
}

bool Process::open_gpus() {
    if (gpus_open_.load(std::memory_order_acquire))
        return true;
    struct Opening {
        FoundGpus found;
        ConfigError error;
    };
    const Scratch<Opening> opening;
    if (!opening)
        return no_memory();
    FoundGpus& found = opening->found;
    const bool fits = find_gpus(found, opening->error);
    const Loading loading(mutex_);
    if (gpus_open_.load(std::memory_order_relaxed))
        return true;
    if (!fits)
        return fail_closed(opening->error);

    bool limits = false;
    int features = 0, count = 0;
    for (const VirtualPart& part : found.parts.view()) {
        open_gpu(count, part, found);
        const VirtualGpu& opened = gpu(count++);
        limits = limits || opened.limited();
        if (opened.caches() && ContextCache::driver_suffices())
            features |= kCaching;
        if (opened.slice().plus_context)
            features |= kPlusContext;
        if (opened.slice().time.weight)
            features |= kSharingTime;
    }
    const std::string_view record = has_more_rights() ? std::string_view() : record_file(settings());
    if (!record.empty()) {
        recording_.start(record, is_on(settings(), Key::record_stacks), describe_row);
        features |= kRecording;
        limits = true;
    }
    if (features & kSharingTime) {
        limits = true;
        gpu_state().graph_needs.look_at_all();
    }
    limits_.store(limits, std::memory_order_relaxed);
    features_.fetch_or(static_cast<unsigned char>(features), std::memory_order_release);
    named_twice_ = found.named_twice;
    gpu_count_.store(count, std::memory_order_release);
    // A runtime goes on as soon as it sees the split (shim/driver/split_view.cpp): its calls are to be counted by then.
    if (split().installed())
        open_split(found.gpus(), found.parts);
    gpus_open_.store(true, std::memory_order_release);
    return true;
}

}  // namespace cuslice
