// Around calls in which the driver takes or gives back memory by itself.
#include <algorithm>

#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

DriverFootprint::Step VirtualGpu::before_driver_step(bool makes_context) {
    open_driver_footprint();
    pools_.refresh(budget_, false);
    return driver_footprint_.before(budgets(), makes_context);
}

// Charged first and looked at then, so that two at once can both be refused, and never both be served.
bool VirtualGpu::foresee(DriverFootprint::Step& step, std::uint64_t bytes, LimitError* why) {
    const auto fits = [&](LimitError* over) {
        const LockGuard lock(mutex());
        driver_footprint_.foresee(step, bytes);
        if (within_limit(over)) return true;
        driver_footprint_.take_back(step);
        over->requested = bytes;
        over->used -= std::min(over->used, Budget::charged(bytes));
        return false;
    };
    follow_file();
    if (fits(why)) return true;
    gpu_state().look_for_ended(*this);
    refresh(pools_.any());
    take_back_dead();
    return fits(why) || (caches() && gpu_state().reclaimer->trim(*this, bytes) && fits(why));
}

bool VirtualGpu::after_driver_step(DriverFootprint::Step& step, LimitError* why) {
    pools_.refresh(budget_, false);
    const std::uint64_t before = driver_footprint();
    DriverFootprint::State state = driver_state();
    if (!step.known()) state.of_others = used_by_others();
    driver_footprint_.after(step, state, budgets());
    mutex().lock();
    publish();
    if (driver_footprint_.unsettled()) driver_gave_back();
    const std::uint64_t now = driver_footprint_.measured(), more = now > before ? now - before : 0;
    // What went may have been charged to another part.
    for (VirtualGpu* part : physical_->parts())
        if (part != this) part->driver_gave_back();
    mutex().unlock();
    LimitError over;
    bool fits = within_limit(&over);
    if (!fits) {
        take_back_dead();
        fits = within_limit(&over);
    }
    // What is cached makes room for what the driver needs itself.
    if (!fits && caches() && gpu_state().reclaimer->trim(*this, over.used - over.ceiling)) fits = within_limit(&over);
    if (fits && caches()) gpu_state().reclaimer->top_up(*this);
    if (fits || !why) return fits;
    *why = over;
    why->requested = more;
    why->used -= more;
    return fits;
}

std::uint64_t VirtualGpu::steps_of_all() const {
    std::uint64_t steps = 0;
    for (const VirtualGpu* part : physical_->parts()) steps += part->driver_footprint_.step_count();
    return steps;
}

// A context that another thread is making is charged before it is known. It makes a step, or did before the first look
// here and is counted as being made.
void VirtualGpu::after_context_end(DriverFootprint::Step& step) {
    const std::uint64_t steps = steps_of_all();
    const bool none = !driver_footprint_.exact() && gpu_state().contexts_being_made.load() == 0 &&
                      driver_state().contexts == 0 && !physical_primary_is_active(device());
    after_driver_step(step, nullptr);
    if (!none) return;
    const LockGuard lock(mutex());
    if (driver_footprint_.exact() || steps_of_all() != steps + 1) return;
    for (VirtualGpu* part : physical_->parts())
        if (!part->driver_footprint_.at_rest()) return;
    for (VirtualGpu* part : physical_->parts()) {
        part->driver_footprint_.none_left(part->budget_);
        part->publish();
    }
}

}  // namespace cuslice
