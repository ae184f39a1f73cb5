#include "virtual_gpu/driver_part.h"

#include <algorithm>

namespace cuslice {

void DriverPart::open(const char* uuid, unsigned pid, FreeMemory free_memory, std::uint64_t first_context_at_most,
                      const InFlight& frees) {
    frees_ = &frees;
    pid_ = pid;
    free_memory_ = free_memory;
    first_context_at_most_ = first_context_at_most;
    std::uint64_t bytes = 0;
    // A process that has no context yet is in nobody's list. If our pid is there all the same, it is somebody else's,
    // in another pid namespace, and its figures are not ours.
    if (!nvml_.open(uuid) || nvml_.used_by_process(pid_, &bytes) == Reading::ok) source_ = Source::steps;
}

bool DriverPart::used_by_all(std::uint64_t* bytes) const {
    if (nvml_.used_by_all(bytes) == Reading::ok) return true;
    std::uint64_t free = 0, total = 0;
    if (!free_memory_(&free, &total)) return false;
    *bytes = total - free;
    return true;
}

void DriverPart::set(std::uint64_t bytes, Budget& budget) {
    budget.adjust(bytes_, bytes);
    bytes_ = bytes;
}

DriverPart::Step DriverPart::before(const Budgets& budgets) {
    Step step;
    if (source_ == Source::process) return step;  // the figure afterwards says it all
    step.counted = budgets.used() - Budget::charged(bytes_);
    step.known = used_by_all(&step.used);
    return step;
}

void DriverPart::after(const Step& step, std::uint64_t unsure, const Budgets& budgets) {
    if (source_ != Source::steps) {
        const Reading reading = read_process(unsure, budgets);
        if (source_ == Source::undecided) source_ = reading == Reading::ok ? Source::process : Source::steps;
        if (source_ == Source::process) return;
    }
    std::uint64_t used = 0;
    if (!used_by_all(&used)) return;
    if (!step.known) {
        // The first context, and nothing told us what was there before it: all that is in use is ours, up to what a
        // context can plausibly take.
        if (!bytes_ && !budgets.used()) set(std::min(used, first_context_at_most_), budgets.own);
        return;
    }
    const std::uint64_t counted = budgets.used() - Budget::charged(bytes_);
    const auto change = static_cast<std::int64_t>(used - step.used) - static_cast<std::int64_t>(counted - step.counted);
    set(change < 0 && static_cast<std::uint64_t>(-change) > bytes_ ? 0 : bytes_ + static_cast<std::uint64_t>(change),
        budgets.own);
}

bool DriverPart::refresh(std::uint64_t unsure, const Budgets& budgets) {
    bool compared = true;
    if (source_ == Source::process) read_process(unsure, budgets, &compared);
    return compared;
}

namespace {

// What all of these budgets were at one moment, if nothing has come or gone since.
class Moment {
  public:
    explicit Moment(const DriverPart::Budgets& budgets) : budgets_(budgets), own_(budgets.own.snapshot()) {
        for (std::size_t i = 0; i < budgets.others.size(); i++) others_[i] = budgets.others[i]->snapshot();
    }
    std::uint64_t used() const {
        std::uint64_t bytes = own_.used();
        for (std::size_t i = 0; i < budgets_.others.size(); i++) bytes += others_[i].used();
        return bytes;
    }
    bool settled() const {
        bool all = budgets_.own.settled(own_);
        for (std::size_t i = 0; i < budgets_.others.size(); i++) all = all && budgets_.others[i]->settled(others_[i]);
        return all;
    }

  private:
    const DriverPart::Budgets& budgets_;
    Budget::Snapshot own_, others_[DriverPart::kMostParts];
};

}  // namespace

Reading DriverPart::read_process(std::uint64_t unsure, const Budgets& budgets, bool* compared) {
    // The comparison means something only while no allocation is between our charge and the driver's. A few tries; a
    // busy program keeps the last figure and is measured at the next occasion.
    Reading reading = Reading::failed;
    if (compared) *compared = false;
    for (int i = 0; i < 16; i++) {
        const std::uint64_t frees = frees_->snapshot();
        const Moment now(budgets);
        std::uint64_t process = 0;
        reading = nvml_.used_by_process(pid_, &process);
        if (reading == Reading::failed) break;        // the last figure stands; silence is not zero
        if (reading == Reading::absent) process = 0;  // the last context is gone
        if (!now.settled() || !frees_->settled(frees)) continue;
        const std::uint64_t counted = now.used() - Budget::charged(bytes_);
        // With managed memory alive the figure leaves a range; what was known before stands unless it is outside.
        const std::uint64_t least = process > counted ? process - counted : 0;
        const std::uint64_t sure = counted - std::min(counted, unsure);
        const std::uint64_t kept = bytes_ - std::min(bytes_, taken_over_);
        taken_over_ = 0;
        if (compared) *compared = true;
        set(std::clamp(kept, least, std::max(least, process > sure ? process - sure : 0)), budgets.own);
        break;
    }
    return reading;
}

}  // namespace cuslice
