// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/driver_steps.h"

#include <algorithm>
#include <span>

#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/free_memory.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/primary_context.h"
#include "virtual_gpu/nvml/nvml_gpu.h"
#include "virtual_gpu/nvml/own_pid.h"

namespace cuslice {

namespace {

constexpr uint64_t kMiB = 1 << 20;

// The most that a first context is believed to take where neither NVML nor a figure from before it is to be had: what
// TensorFlow leaves to the driver and its libraries, by compute capability (its MinSystemMemory).
uint64_t first_context_at_most(CUdevice device) {
    int major = 0;
    CUSLICE_REAL(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    constexpr uint64_t kFrom6To9[] = {500 * kMiB, 1050 * kMiB, 1536 * kMiB, 1800 * kMiB};
    return kFrom6To9[std::clamp(major, 6, 9) - 6];
}

// Bytes by which the limit is exceeded.
uint64_t missing(const LimitError& over) { return over.used - std::min(over.used, over.ceiling); }

// The partition whose limit is exceeded: one of those beside `gpu`, or itself.
VirtualGpu& partition_of(const LimitError& over, VirtualGpu& gpu) {
    if (over.of != LimitOf::other_part)
        return gpu;
    for (VirtualGpu* part : gpu.physical().parts())
        if (part->ordinal() == over.part)
            return *part;
    return gpu;
}

bool has_no_context(const VirtualGpu& gpu) {
    return gpu.physical().state(gpu_state().contexts).contexts == 0 && !physical_primary_is_active(gpu.device());
}

bool is_of_several(LimitOf of) { return of == LimitOf::whole_gpu || of == LimitOf::group || of == LimitOf::rule; }

bool is_shared_by_partitions(LimitOf of) { return of == LimitOf::process || of == LimitOf::job; }

}  // namespace

// Not before the first context: a process that only counts GPUs does not pay for NVML.
void DriverSteps::open_footprint() const {
    if (gpu_.measured())
        return;
    NvmlGpu nvml;
    const bool there = gpu_state().start_nvml() && nvml.open(physical_.identity().uuid);
    const unsigned pid = there ? pid_in_nvml(pid_facts()) : 0;
    const uint64_t at_most = first_context_at_most(gpu_.device());
    const uint64_t on_top_at_most = gpu_.slice().plus_context ? at_most : 0;
    const LockGuard lock(physical_.mutex());
    if (gpu_.measured())
        return;
    footprint().open(nvml, pid, free_memory, at_most, on_top_at_most, gpu_state().frees, physical_.mutex());
    for (VirtualGpu* part : physical_.parts())
        part->begin_measured();
}

DriverFootprint::State DriverSteps::state() const { return physical_.state(gpu_state().contexts); }

// Bytes that others of the same job or group hold on the whole GPU, according to the ledger.
uint64_t DriverSteps::used_by_others() const {
    ledger::Watched all;
    GpuSharing& sharing = physical_.is_split() ? physical_.sharing() : gpu_.siblings().sharing();
    if (footprint().exact() || !sharing.watch(gpu_state().sharing, physical_.identity().uuid, &all))
        return 0;
    const uint64_t own = sharing.joined() ? physical_.charged() : 0;
    return all.used - std::min(all.used, own);
}

void DriverSteps::charge_unseen_context() const {
    open_footprint();
    DriverFootprint::State now = state();
    now.contexts = std::max(now.contexts, 1u);
    now.of_others = used_by_others();
    footprint().meet(now, physical_.budgets());
    const LockGuard lock(physical_.mutex());
    physical_.publish_footprint();
}

DriverFootprint::Step DriverSteps::before(bool makes_context) const {
    open_footprint();
    gpu_.pools().refresh(gpu_.budget(), false);
    return footprint().before(physical_.budgets(), makes_context);
}

bool DriverSteps::within_limits(LimitError& why) const {
    if (!gpu_.within_limit(&why))
        return false;
    for (const VirtualGpu* part : physical_.parts()) {
        if (part == &gpu_ || part->within_limit(&why))
            continue;
        // A limit that they share is the same for this part.
        if (is_shared_by_partitions(why.of)) {
            why.of = LimitOf::other_part;
            why.part = part->ordinal();
        }
        return false;
    }
    const uint64_t most = physical_.limit_of_all(), used = most ? physical_.counted_of_all() : 0;
    if (used <= most)
        return true;
    why = {.used = used, .ceiling = most, .limit = most, .of = LimitOf::whole_gpu};
    return false;
}

// The same without what other members of the accounts have given back.
bool DriverSteps::within_given_back() const {
    const auto within = [](VirtualGpu* part) {
        return part->within_limit(nullptr) || part->siblings().given_back().within_limit();
    };
    const std::span<VirtualGpu* const> parts = physical_.parts();
    const uint64_t most = physical_.limit_of_all();
    return std::all_of(parts.begin(), parts.end(), within) && (!most || physical_.counted_of_all() <= most);
}

// True once it fits, if need be with what is cached in the partition whose limit is exceeded: each may have something.
template <typename Fits>
bool DriverSteps::fits_by_trimming(const LimitError& over, Fits fits) const {
    for (size_t tries = physical_.parts().size() + 1; !fits(); tries--) {
        VirtualGpu& full = partition_of(over, gpu_);
        if (tries == 0 || !full.caches() || gpu_state().reclaimer->trim(full, missing(over)) == 0)
            return false;
    }
    return true;
}

// Restates `over` as it was before `bytes` that the driver takes were charged in it, with the request and the
// headroom of the limit that stood in the way.
void DriverSteps::restate(LimitError& over, uint64_t bytes) const {
    const VirtualGpu& full = partition_of(over, gpu_);
    over.requested = is_of_several(over.of) ? bytes : physical_.share_of(full, bytes);
    over.headroom = full.headroom(over.of);
    over.used -= std::min(over.used, Budget::charged(over.requested));
}

// The ledger is believed up to what a context can plausibly take.
uint64_t DriverSteps::known_context(uint64_t kind) const {
    const uint64_t bytes = gpu_.siblings().known_by().least_context(kind);
    if (!bytes)
        return 0;
    open_footprint();
    const bool plausible = bytes <= footprint().context_at_most();
    const bool first = footprint().bytes() == 0 && has_no_context(gpu_);
    return plausible && first ? bytes : 0;
}

void DriverSteps::note_context(uint64_t kind) const {
    if (const uint64_t bytes = footprint().take_first_context())
        gpu_.siblings().known_by().note_context(kind, bytes);
}

// The same as reserve_lower_bound() with what others have given back. NVML is asked for that, so without the lock.
bool DriverSteps::fits_given_back(DriverFootprint::Step& step, uint64_t bytes) const {
    {
        const LockGuard lock(physical_.mutex());
        footprint().foresee(step, bytes);
    }
    if (within_given_back())
        return true;
    const LockGuard lock(physical_.mutex());
    footprint().take_back(step);
    return false;
}

// Charged first and looked at then, so that two at once can both be refused, and never both be served.
bool DriverSteps::reserve_lower_bound(DriverFootprint::Step& step, uint64_t bytes, LimitError* why) const {
    LimitError over;
    const auto fits = [&] {
        const LockGuard lock(physical_.mutex());
        footprint().foresee(step, bytes);
        if (within_limits(over))
            return true;
        footprint().take_back(step);
        return false;
    };
    Siblings& siblings = gpu_.siblings();
    siblings.follow_file();
    if (fits())
        return true;
    gpu_state().look_for_ended(gpu_);
    gpu_.refresh(gpu_.pools().any());
    siblings.take_back_dead();
    if (fits_by_trimming(over, fits) || fits_given_back(step, bytes) || siblings.wait_until(bytes, fits))
        return true;
    restate(over, bytes);
    if (why)
        *why = over;
    return false;
}

bool DriverSteps::after(DriverFootprint::Step& step, LimitError* why) const {
    gpu_.pools().refresh(gpu_.budget(), false);
    const uint64_t before = footprint().bytes();
    DriverFootprint::State now = state();
    if (!step.known())
        now.of_others = used_by_others();
    footprint().after(step, now, physical_.budgets());
    uint64_t more = 0;
    {
        const LockGuard lock(physical_.mutex());
        physical_.publish_footprint();
        if (footprint().unsettled())
            gpu_.driver_gave_back();
        more = footprint().measured() - std::min(footprint().measured(), before);
    }
    LimitError over;
    const auto fits = [&] { return within_limits(over); };
    const auto makes_room = [&] {
        gpu_.siblings().take_back_dead();
        return fits_by_trimming(over, fits) || within_given_back();
    };
    const bool fit = fits() || makes_room() || (why && gpu_.siblings().wait_until(missing(over), fits));
    if (fit) {
        for (VirtualGpu* part : physical_.parts())
            if (part->caches())
                gpu_state().reclaimer->top_up(*part);
    } else if (why) {
        restate(over, more);
        *why = over;
    }
    return fit;
}

// A context that another thread is making is charged before it is known. It makes a step, or did before the first look
// here and is counted as being made.
void DriverSteps::after_context_end(DriverFootprint::Step& step) const {
    const uint64_t steps = footprint().step_count();
    const bool none_made = gpu_state().contexts_being_made.load() == 0 && !footprint().exact();
    const bool none = none_made && has_no_context(gpu_);
    after(step, nullptr);
    if (!none)
        return;
    const LockGuard lock(physical_.mutex());
    const bool undisturbed = footprint().step_count() == steps + 1 && footprint().at_rest();
    if (footprint().exact() || !undisturbed)
        return;
    footprint().none_left(physical_.budgets());
    physical_.publish_footprint();
}

}  // namespace cuslice
