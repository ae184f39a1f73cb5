// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/virtual_gpu.h"

#include <algorithm>
#include <cstdio>

#include "policy/base/cancellation.h"
#include "policy/base/kernel_clock.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/gpu/free_memory.h"
#include "virtual_gpu/gpu/gpu_state.h"

namespace cuslice {

namespace {

// Bytes in use on the GPU according to CUDA, less those charged here: memory that others hold, or that wasn't seen.
// Cheap beside NVML.
uint64_t unseen_on(const PhysicalGpu& gpu) {
    uint64_t free = 0, total = 0;
    return free_memory(&free, &total) ? total - free - gpu.held() : FootprintPolling::kUnknown;
}

// 0 where there is less than what is taken off.
uint64_t less(uint64_t bytes, uint64_t taken_off) { return bytes - std::min(bytes, taken_off); }

}  // namespace

void VirtualGpu::open(int ordinal, const GpuIdentity& identity, PhysicalGpu& physical, const char* name,
                      const Slice& slice) {
    ordinal_ = ordinal;
    pools_.open(ordinal);
    identity_ = identity;
    physical_ = &physical;
    slice_ = slice;
    slice_.limit = std::min(slice.limit, physical.total());
    std::snprintf(name_, sizeof(name_), "%s", name);
    siblings_.open(slice_, physical, budget_, gpu_state().lowered_limits[ordinal], gpu_state().start_nvml);
    physical.add({.gpu = this,
                  .device = ordinal,
                  .slice = &slice_,
                  .budget = &budget_,
                  .pools = &pools_,
                  .publish = [](VirtualGpu& part, uint64_t bytes) { part.publish(bytes); }});
    if (limited())
        publish(0);
}

uint64_t VirtualGpu::headroom(LimitOf of) const {
    const bool of_all = of == LimitOf::whole_gpu || of == LimitOf::group || of == LimitOf::rule;
    const bool lowered = siblings_.own_limit(slice_.limit) < slice_.limit;
    return of_all ? physical_->headroom() : slice_.headroom_for(driver_footprint(), lowered);
}

// Makes what was measured take effect: the ceiling for reservations, and when to poll next.
void VirtualGpu::publish(uint64_t driver_bytes) {
    __atomic_store_n(&driver_bytes_, driver_bytes, __ATOMIC_RELAXED);
    const uint64_t room = headroom();
    // A shared limit may be changed by others at any time, and is looked at there.
    siblings_.sharing().budget().set_margin(room);
    const uint64_t most = siblings_.own_limit(slice_.limit);
    budget_.set_ceiling(most == Budget::kUnlimited ? most : less(most, room));
    polling_.restart(budget_.used(), slice_.plus_context ? derived_headroom(driver_bytes) : room);
}

// More is in use than at the last poll, or less was meanwhile.
[[gnu::cold, gnu::noinline]] void VirtualGpu::poll_at_mark(uint64_t used, uint64_t bytes) {
    const uint64_t at_most = std::min(bytes, physical_->total());
    const FootprintPolling::Mark mark = polling_.reach(used, bytes, at_most);
    if (mark == FootprintPolling::Mark::moved)
        return;
    const bool may_wait = mark == FootprintPolling::Mark::near;
    if (may_wait && (!polling_.due() || !worth_polling(bytes)))
        return;
    poll_footprint();
    polling_.advance(at_most);
}

// Far from the limit: a request of so many bytes leaves what is set aside for the driver twice, once for what it may
// have taken in a tick of the coarse clock (1 to 10 ms), and once more that is looked at before it is granted.
bool VirtualGpu::worth_polling(uint64_t bytes) {
    const uint64_t left = room();
    const bool far_from_limit = bytes <= left && left - bytes >= polling_.margin();
    const FootprintPolling::Answer answer = polling_.ask(far_from_limit, coarse_milliseconds());
    if (answer != FootprintPolling::Answer::if_unseen_changed)
        return answer == FootprintPolling::Answer::yes;
    return polling_.changed(unseen_on(*physical_));
}

void VirtualGpu::poll_footprint() {
    const uint64_t before = driver_footprint();
    refresh();
    const int64_t now = coarse_milliseconds();
    polling_.polled(driver_footprint() != before, unseen_on(*physical_), now);
}

void VirtualGpu::refresh(bool trim_pools) {
    const bool stale = polling_.take_stale();
    pools_.refresh(budget_, trim_pools);  // first: the driver's footprint is what is left after everything else
    DriverFootprint& footprint = physical_->driver_footprint();
    // A stale footprint stays so if something was in flight, such as the operation that asks.
    const bool compared =
        !measured() || footprint.refresh(physical_->state(gpu_state().contexts), physical_->budgets());
    // And what others keep may go at any time.
    if ((!compared && stale) || footprint.unlisted().any())
        polling_.set_stale();
    const LockGuard lock(physical_->mutex());
    physical_->publish_footprint();
}

void VirtualGpu::refresh_if_stale() {
    if (!polling_.stale())
        return;
    const DisableCancellation locked;
    refresh();
}

void VirtualGpu::poll_cached() {
    if (!measured())
        return;
    const bool due = polling_.due();
    if (!due && !siblings_.joined() && within_limit(nullptr))
        return;
    if (giving_back_.exchange(true, std::memory_order_acquire))
        return;
    const DisableCancellation locked;
    if (due && worth_polling(0))
        poll_footprint();
    LimitError over;
    const bool fits = within_limit(&over) || siblings_.given_back().within_limit();
    if (!fits)
        gpu_state().reclaimer->trim(*this, over.used - over.ceiling);
    if (siblings_.joined())
        siblings_.publish_reclaimable(gpu_state().reclaimer->unused(*this));
    giving_back_.store(false, std::memory_order_release);
}

// Checks bytes that have just been charged to a partition against the limit of the whole GPU. Charging comes first,
// so that two partitions at once can both be refused, and never both be served.
bool VirtualGpu::fits_in_whole(uint64_t bytes, LimitError* why) {
    const uint64_t used = physical_->counted_of_all();
    if (used + physical_->headroom() <= physical_->limit_of_all())
        return true;
    budget_.roll_back(bytes);
    if (why) {
        const uint64_t room = physical_->headroom(), most = physical_->limit_of_all();
        *why = {.requested = bytes,
                .used = used - Budget::charged(bytes),
                .ceiling = less(most, room),
                .limit = most,
                .of = LimitOf::whole_gpu};
    }
    return false;
}

// A process may take memory before its first context, and then make that where no hook is: so it is looked for until
// there is one.
[[gnu::cold, gnu::noinline]] bool VirtualGpu::enter_now(uint64_t bytes, LimitError* why, CacheOfUnseen cache) {
    const DisableCancellation locked;
    if (!siblings_.is_member()) {
        const Scratch<Refusal> refusal;
        if (!refusal || !join(&*refusal)) {
            if (why)
                *why = {.requested = bytes, .no_place = true};
            return false;
        }
    }
    if (gpu_state().charge_unseen(*this, cache))
        entered_.store(true, std::memory_order_release);
    return true;
}

// Joined only when every partition has, as all are charged for memory that the driver takes: the next caller retries a
// refused join.
bool VirtualGpu::join(Refusal* refusal) {
    const GpuState& state = gpu_state();
    const SharingPlan& plan = state.sharing;
    refusal->how = ledger::Joined::yes;
    if (siblings_.is_member())
        return true;
    if (!slice_.can_be_shared() || !plan.any()) {
        siblings_.become_member();
        return true;
    }
    state.start_nvml();
    if (physical_->is_split() && !physical_->join(plan, refusal))
        return false;
    for (VirtualGpu* part : physical_->parts()) {
        if (!part->siblings_.join(plan, part->identity_.uuid, part->caches(), refusal))
            return false;
        // The driver's footprint may have been charged already, and changes only under this lock.
        const LockGuard lock(physical_->mutex());
        if (part->siblings_.share_budget(plan))
            physical_->publish_footprint();
    }
    for (VirtualGpu* part : physical_->parts())
        part->siblings_.become_member();
    return true;
}

// A reservation has been refused once.
[[gnu::cold, gnu::noinline]] bool VirtualGpu::reserve_what_shrank(uint64_t bytes, LimitError* why,
                                                                  const ContextCache* segment_of) {
    gpu_state().look_for_ended(*this);
    refresh();
    siblings_.take_back_dead();
    if (charge(bytes))
        return true;
    if (pools_.any())
        refresh(true);
    if (charge(bytes, why))
        return true;
    if (caches() && gpu_state().reclaimer->trim(*this, bytes, segment_of) && charge(bytes, why))
        return true;
    if (!segment_of) {
        // A pool that is growing has more than it needs for the moment.
        pools_.await_growth();
        if (charge(bytes, why))
            return true;
    }
    if (siblings_.given_back().reserve(bytes, why))
        return true;
    return siblings_.wait_until(bytes, [&] { return charge(bytes, why); });
}

uint64_t VirtualGpu::room() const {
    const uint64_t used = budget_.used(), ceiling = budget_.ceiling();
    uint64_t own = less(ceiling, used);
    if (siblings_.joined())
        own = std::min(own, siblings_.room(used));
    if (!physical_->limit_of_all())
        return own;
    const uint64_t all = physical_->counted_of_all() + physical_->headroom(), whole = physical_->limit_of_all();
    return std::min(own, less(whole, all));
}

void lower_limit(VirtualGpu& gpu, uint64_t bytes) {
    const DisableCancellation locked;
    {
        const LockGuard hold(gpu.physical().mutex());
        gpu_state().lowered_limits[gpu.ordinal()].set(bytes);
        gpu.physical().publish_footprint();
    }
    const uint64_t used = gpu.budget().used(), most = gpu.budget().ceiling();
    if (used > most)
        gpu_state().reclaimer->trim(gpu, used - most);
}

std::string_view origin_of(const VirtualGpu& gpu, LimitOf of, uint64_t bytes) {
    const bool own = of == LimitOf::process && bytes == gpu_state().lowered_limits[gpu.ordinal()].bytes();
    return own ? kSetByProgram : gpu.slice().origin_of(of, bytes, gpu.physical().whole_slice());
}

}  // namespace cuslice
