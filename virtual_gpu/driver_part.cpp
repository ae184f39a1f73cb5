#include "virtual_gpu/driver_part.h"

#include <algorithm>

namespace cuslice {

namespace {

constexpr int kTries = 16;

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

void DriverPart::open(const NvmlGpu& nvml, unsigned pid, FreeMemory free_memory, std::uint64_t first_context_at_most,
                      const InFlight& frees, Mutex& mutex) {
    nvml_ = nvml;
    pid_ = pid;
    free_memory_ = free_memory;
    first_context_at_most_ = first_context_at_most;
    frees_ = &frees;
    mutex_ = &mutex;
}

bool DriverPart::used_by_all(std::uint64_t* bytes) const {
    if (nvml_.used_by_all(bytes) == Reading::ok) return true;
    std::uint64_t free = 0, total = 0;
    if (!free_memory_(&free, &total)) return false;
    *bytes = total - free;
    return true;
}

// With the lock held.
void DriverPart::set(std::uint64_t bytes, Budget& budget) {
    budget.adjust(bytes_.load(std::memory_order_relaxed), bytes);
    bytes_.store(bytes, std::memory_order_relaxed);
}

// Both mean something together only if nothing of ours was under way meanwhile. A few tries.
DriverPart::Look DriverPart::look(const Budgets& budgets) const {
    for (int i = 0; i < kTries; i++) {
        const std::uint64_t frees = frees_->snapshot();
        const Moment now(budgets);
        Look found{true};
        if (!used_by_all(&found.used)) return {};
        const LockGuard lock(*mutex_);
        if (!now.settled() || !frees_->settled(frees)) continue;
        found.counted = now.used() - Budget::charged(bytes());
        return found;
    }
    return {};
}

DriverPart::Step DriverPart::before(const Budgets& budgets) {
    if (exact()) return {};  // the figure afterwards says it all
    const Look now = look(budgets);
    return {now.known, now.used, now.counted};
}

void DriverPart::after(const Step& step, const State& state, const Budgets& budgets) {
    if (read_process(state, budgets) || exact()) return;
    if (!step.known) return meet_by_steps(state, budgets);
    const Look now = look(budgets);
    if (!now.known) return;
    const auto change =
        static_cast<std::int64_t>(now.used - step.used) - static_cast<std::int64_t>(now.counted - step.counted);
    const LockGuard lock(*mutex_);
    last_ = now;
    set(change < 0 && static_cast<std::uint64_t>(-change) > bytes() ? 0 : bytes() + static_cast<std::uint64_t>(change),
        budgets.own);
}

void DriverPart::meet(const State& state, const Budgets& budgets) {
    if (!read_process(state, budgets) && !exact()) meet_by_steps(state, budgets);
}

void DriverPart::meet_by_steps(const State& state, const Budgets& budgets) {
    const Look now = look(budgets);
    if (!now.known) return;
    const LockGuard lock(*mutex_);
    const std::uint64_t known =
        last_.known ? last_.used - last_.counted + now.counted : now.counted + bytes() + state.of_others;
    last_ = now;
    set(bytes() + std::min(now.used > known ? now.used - known : 0, first_context_at_most_), budgets.own);
}

bool DriverPart::refresh(const State& state, const Budgets& budgets) {
    bool compared = true;
    read_process(state, budgets, &compared);
    return compared || !exact();
}

// The comparison means something only while no allocation is between our charge and the driver's. A few tries; a busy
// program keeps the last figure and is measured at the next occasion. True if NVML has a figure of this process.
bool DriverPart::read_process(const State& state, const Budgets& budgets, bool* compared) {
    if (!pid_) return false;
    if (compared) *compared = false;
    for (int i = 0; i < kTries; i++) {
        const std::uint64_t frees = frees_->snapshot();
        const Moment now(budgets);
        std::uint64_t process = 0;
        const Reading reading = nvml_.used_by_process(pid_, &process);
        // Silence is not zero: the last figure stands. That NVML has dropped us from its list means that we hold
        // nothing if it had listed us, and no context of ours is there.
        const bool gone = reading == Reading::absent && exact() && !state.alive;
        if (reading != Reading::ok && !gone) {
            if (compared) *compared = true;
            return false;
        }
        source_.store(Source::process, std::memory_order_relaxed);
        const LockGuard lock(*mutex_);
        if (!now.settled() || !frees_->settled(frees)) continue;
        const std::uint64_t counted = now.used() - Budget::charged(bytes());
        // With managed memory alive the figure leaves a range; what was known before stands unless it is outside.
        const std::uint64_t least = process > counted ? process - counted : 0;
        const std::uint64_t sure = counted - std::min(counted, state.unsure);
        const std::uint64_t kept = bytes() - std::min(bytes(), taken_over_);
        taken_over_ = 0;
        if (compared) *compared = true;
        set(std::clamp(kept, least, std::max(least, process > sure ? process - sure : 0)), budgets.own);
        break;
    }
    return true;
}

}  // namespace cuslice
