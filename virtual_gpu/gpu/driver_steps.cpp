// Around calls in which the driver takes or gives back memory by itself.
#include <algorithm>

#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

DriverFootprint::Step VirtualGpu::before_driver_step(bool makes_context) {
    open_driver_footprint();
    pools_.refresh(budget_, false);
    return footprint().before(budgets(), makes_context);
}

// All partitions of the GPU are charged for memory that the driver takes, so all of them have to have room for it.
bool VirtualGpu::all_within_limits(LimitError* why) const {
    if (!within_limit(why)) return false;
    if (!physical_->is_split()) return true;
    for (const VirtualGpu* part : physical_->parts()) {
        if (part == this || part->within_limit(why)) continue;
        if (!why) return false;
        // A limit that they share is the same for this part.
        if (why->of == LimitOf::process || why->of == LimitOf::job) {
            why->of = LimitOf::other_part;
            why->part = part->ordinal();
        }
        return false;
    }
    const std::uint64_t most = physical_->limit_of_all(), used = most ? physical_->counted_of_all() : 0;
    if (used <= most) return true;
    if (why) *why = {.used = used, .ceiling = most, .limit = most, .of = LimitOf::whole_gpu};
    return false;
}

// Has the part give back what it has cached whose limit is exceeded. False if that is nothing.
bool VirtualGpu::trim_for_driver(const LimitError& over) {
    const std::uint64_t missing = over.used - std::min(over.used, over.ceiling);
    for (VirtualGpu* part : physical_->parts())
        if (part->caches() && (over.of == LimitOf::other_part ? part->ordinal() == over.part : part == this))
            return gpu_state().reclaimer->trim(*part, missing) != 0;
    return false;
}

// Restates `over` as it was before `bytes` that the driver takes were charged in it, with the request and the
// headroom of the limit that stood in the way.
void VirtualGpu::less_driver_step(LimitError& over, std::uint64_t bytes) const {
    const bool of_all = over.of == LimitOf::whole_gpu || over.of == LimitOf::group || over.of == LimitOf::rule;
    const VirtualGpu* full = this;
    for (const VirtualGpu* part : physical_->parts())
        if (over.of == LimitOf::other_part && part->ordinal() == over.part) full = part;
    over.requested = of_all ? bytes : physical_->share_of(*full, bytes);
    over.headroom = full->headroom(over.of);
    over.used -= std::min(over.used, Budget::charged(over.requested));
}

GpuSharing& VirtualGpu::accounts() { return sharing_.joined() ? sharing_ : physical_->sharing(); }

// The ledger is believed up to what a context can plausibly take.
std::uint64_t VirtualGpu::known_context(std::uint64_t kind) {
    const std::uint64_t bytes = accounts().least_context(kind);
    if (!bytes) return 0;
    open_driver_footprint();
    const bool first =
        footprint().bytes() == 0 && driver_state().contexts == 0 && !physical_primary_is_active(device());
    return first && bytes <= footprint().context_at_most() ? bytes : 0;
}

void VirtualGpu::note_context(std::uint64_t kind) {
    if (const std::uint64_t bytes = footprint().take_first_context()) accounts().note_context(kind, bytes);
}

// The same as foresee() with what others have given back. NVML is asked for that, so without the lock.
bool VirtualGpu::fits_given_back(DriverFootprint::Step& step, std::uint64_t bytes) {
    {
        const LockGuard lock(mutex());
        footprint().foresee(step, bytes);
    }
    if (all_within_given_back()) return true;
    const LockGuard lock(mutex());
    footprint().take_back(step);
    return false;
}

// Charged first and looked at then, so that two at once can both be refused, and never both be served.
bool VirtualGpu::foresee(DriverFootprint::Step& step, std::uint64_t bytes, LimitError* why) {
    LimitError over;
    const auto fits = [&] {
        const LockGuard lock(mutex());
        footprint().foresee(step, bytes);
        if (all_within_limits(&over)) return true;
        footprint().take_back(step);
        return false;
    };
    follow_file();
    if (fits()) return true;
    gpu_state().look_for_ended(*this);
    refresh(pools_.any());
    take_back_dead();
    // Each part may have something cached.
    for (std::size_t tries = physical_->parts().size() + 1; tries > 0; tries--) {
        if (fits()) return true;
        if (!trim_for_driver(over)) break;
    }
    if (fits_given_back(step, bytes) || fits_after_siblings(bytes, fits)) return true;
    less_driver_step(over, bytes);
    if (why) *why = over;
    return false;
}

bool VirtualGpu::after_driver_step(DriverFootprint::Step& step, LimitError* why) {
    pools_.refresh(budget_, false);
    const std::uint64_t before = footprint().bytes();
    DriverFootprint::State state = driver_state();
    if (!step.known()) state.of_others = used_by_others();
    footprint().after(step, state, budgets());
    std::uint64_t more = 0;
    {
        const LockGuard lock(mutex());
        publish_parts();
        if (footprint().unsettled()) driver_gave_back();
        more = footprint().measured() - std::min(footprint().measured(), before);
    }
    LimitError over;
    bool fits = all_within_limits(&over);
    if (!fits) {
        take_back_dead();
        fits = all_within_limits(&over);
    }
    // Cached memory makes room for the driver's own needs.
    for (std::size_t tries = physical_->parts().size(); !fits && tries > 0 && trim_for_driver(over); tries--)
        fits = all_within_limits(&over);
    fits = fits || all_within_given_back();
    if (!fits && why)
        fits = fits_after_siblings(over.used - std::min(over.used, over.ceiling),
                                   [&] { return all_within_limits(&over); });
    for (VirtualGpu* part : physical_->parts())
        if (fits && part->caches()) gpu_state().reclaimer->top_up(*part);
    if (fits || !why) return fits;
    less_driver_step(over, more);
    *why = over;
    return fits;
}

// A context that another thread is making is charged before it is known. It makes a step, or did before the first look
// here and is counted as being made.
void VirtualGpu::after_context_end(DriverFootprint::Step& step) {
    const std::uint64_t steps = footprint().step_count();
    const bool none = !footprint().exact() && gpu_state().contexts_being_made.load() == 0 &&
                      driver_state().contexts == 0 && !physical_primary_is_active(device());
    after_driver_step(step, nullptr);
    if (!none) return;
    const LockGuard lock(mutex());
    if (footprint().exact() || footprint().step_count() != steps + 1 || !footprint().at_rest()) return;
    footprint().none_left(budgets());
    publish_parts();
}

}  // namespace cuslice
