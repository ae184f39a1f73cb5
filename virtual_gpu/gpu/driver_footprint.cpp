// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/driver_footprint.h"

#include <algorithm>

namespace cuslice {

namespace {

constexpr int kTries = 16;
constexpr uint64_t kMaxBytes = 1ull << 62;

// Snapshot of all these budgets. It is of one moment only if nothing has come or gone since.
class Moment {
  public:
    explicit Moment(const DriverFootprint::Budgets& budgets) : budgets_(budgets) {
        for (size_t i = 0; i < budgets.shares.size(); i++)
            then_[i] = budgets.shares[i].budget->snapshot();
    }
    uint64_t used() const {
        uint64_t bytes = 0;
        for (size_t i = 0; i < budgets_.shares.size(); i++)
            bytes += then_[i].used();
        return bytes;
    }
    bool settled() const {
        for (size_t i = 0; i < budgets_.shares.size(); i++)
            if (!budgets_.shares[i].budget->settled(then_[i]))
                return false;
        return true;
    }

  private:
    const DriverFootprint::Budgets& budgets_;
    Budget::Snapshot then_[DriverFootprint::kMaxShares];
};

}  // namespace

void DriverFootprint::open(const NvmlGpu& nvml, unsigned pid, FreeMemory free_memory, uint64_t first_context_at_most,
                           uint64_t on_top_at_most, const InFlight& frees, Mutex& mutex) {
    nvml_ = nvml;
    pid_ = pid;
    free_memory_ = free_memory;
    first_context_at_most_ = first_context_at_most;
    on_top_at_most_ = on_top_at_most;
    frees_ = &frees;
    mutex_ = &mutex;
    unlisted_.open(nvml, pid, frees, mutex);
}

bool DriverFootprint::used_by_all(uint64_t* bytes) const {
    if (nvml_.used_by_all(bytes) == Reading::ok)
        return true;
    uint64_t free = 0, total = 0;
    if (!free_memory_(&free, &total))
        return false;
    *bytes = total - free;
    return true;
}

// With the lock held. `bytes`: without what is foreseen.
void DriverFootprint::set(uint64_t bytes, std::span<const Share> shares) {
    charge(bytes + foreseen_.load(std::memory_order_relaxed), shares);
}

// With the lock held. `moved`: bytes that `from` is no longer charged with by itself, in the same step.
void DriverFootprint::charge(uint64_t bytes, std::span<const Share> shares, const Budget* from, uint64_t moved) {
    const uint64_t old = charged_of(this->bytes()), now = charged_of(bytes);
    uint64_t old_begin = 0, begin = 0;
    for (const Share& share : shares) {
        const uint64_t old_end = share.up_to(old), end = share.up_to(now);
        const uint64_t was = old_end - old_begin + (moved && share.budget == from ? Budget::charged(moved) : 0);
        if (was != end - begin)
            share.budget->adjust(was, end - begin);
        old_begin = old_end, begin = end;
    }
    bytes_.store(bytes, std::memory_order_relaxed);
}

bool DriverFootprint::take_over(uint64_t bytes, const Budget& from, const Budgets& budgets) {
    is_locked();
    if (!exact() && !marked_)
        return false;
    charge(this->bytes() + bytes, budgets.shares, &from, bytes);
    taken_over_ += bytes;
    return true;
}

// The GPU's total and our own count can be compared only if nothing of ours was under way meanwhile. Tries a few
// times to find such a moment, and calls `use` in it with the lock held.
template <typename Use>
DriverFootprint::Look DriverFootprint::at_rest(const Budgets& budgets, Use use) {
    for (int i = 0; i < kTries; i++) {
        const uint64_t frees = frees_->snapshot();
        const Moment now(budgets);
        uint64_t used = 0;
        if (!used_by_all(&used))
            return Look::unreadable;
        if (budgets.reread)
            budgets.reread(budgets.self);
        const LockGuard lock(*mutex_);
        if (!now.settled() || !frees_->settled(frees))
            continue;
        use(static_cast<int64_t>(used) - static_cast<int64_t>(now.used() - Budget::charged(charged_of(bytes()))));
        return Look::settled;
    }
    return Look::busy;
}

// With the lock held.
void DriverFootprint::count_step(bool begins) {
    begins ? open_steps_++ : open_steps_--;
    step_count_.fetch_add(1, std::memory_order_release);
}

// With the lock held. What was counted before the lock was taken may be wrong by now: `own_steps` have begun or ended
// since without changing anything. And a context whose end is under way is still counted.
void DriverFootprint::know_contexts(const State& state, uint64_t own_steps) {
    const bool sure = open_steps_ == 0 && step_count() == state.steps + own_steps;
    contexts_least_ = sure ? state.contexts * context_bytes() : 0;
}

// With the lock held. What has changed since the last look is the driver's footprint if a step was under way. Else it
// is others', but for what was on its way back: that has gone, or not yet.
void DriverFootprint::attribute(int64_t rest, uint64_t at_most, std::span<const Share> shares) {
    const bool stepped = open_steps_ != 0 || unsettled_;
    const auto base = static_cast<int64_t>(base_), taken = static_cast<int64_t>(taken_over_);
    const int64_t now = base + rest - mark_;
    const int64_t least = stepped ? static_cast<int64_t>(contexts_least_) : base;
    const int64_t most = stepped ? static_cast<int64_t>(std::min(at_most, kMaxBytes)) : base + taken;
    const int64_t part = std::clamp(now, least, std::max(least, most));
    const int64_t not_yet = stepped ? std::min(taken, part) : part - base;
    set(static_cast<uint64_t>(part), shares);
    base_ = static_cast<uint64_t>(part - not_yet);
    mark_ = rest - not_yet;
    taken_over_ = static_cast<uint64_t>(not_yet);
    unsettled_ = false;
}

// The same where a context may have come whose beginning wasn't seen, or not well: up to what one can take.
void DriverFootprint::attribute_context(int64_t rest, uint64_t at_most, const State& state,
                                        std::span<const Share> shares) {
    if (!marked_) {
        base_ = measured();
        mark_ = static_cast<int64_t>(base_ + state.of_others);
        marked_ = true;
    }
    unsettled_ = true;
    attribute(rest, at_most, shares);
}

// With the lock held.
void DriverFootprint::made_context(uint64_t before) {
    if (measured() <= before)
        return;
    contexts_bytes_ += std::min(measured() - before, first_context_at_most_);
    contexts_made_++;
}

// Nothing was there before it, and no other step has begun or ended since.
void DriverFootprint::note_first_context(const Step& step) {
    if (!step.makes_context_ || !step.known_ || step.before_ != 0)
        return;
    const LockGuard lock(*mutex_);
    if (unsettled_ || step_count() != step.count_ + 1)
        return;
    first_context_.store(measured(), std::memory_order_relaxed);
}

DriverFootprint::Step DriverFootprint::before(const Budgets& budgets, bool makes_context) {
    Step step;
    step.part_ = this;
    step.shares_ = budgets.shares;
    step.makes_context_ = makes_context;
    if (exact())
        return step;  // the figure afterwards says it all
    step.open_ = true;
    const Look look = at_rest(budgets, [&](int64_t rest) {
        is_locked();
        if (!marked_)
            base_ = measured(), mark_ = rest, marked_ = true;
        contexts_least_ = 0;
        attribute(rest, kMaxBytes, budgets.shares);
        step.before_ = measured();
        count_step(true);
        if (open_steps_ == 1)
            step.count_ = step_count();
    });
    step.known_ = look != Look::unreadable;
    if (look == Look::settled)
        return step;
    const LockGuard lock(*mutex_);
    count_step(true);
    if (open_steps_ == 1 && !marked_)
        step.count_ = step_count();  // the first of all has nothing before it
    return step;
}

void DriverFootprint::foresee(Step& step, uint64_t bytes) {
    is_locked();
    const uint64_t before = measured();
    step.foreseen_ = Budget::charged(bytes);
    foreseen_.fetch_add(step.foreseen_, std::memory_order_relaxed);
    set(before, step.shares_);
}

// The driver has never held it, so that it is in nobody's peak.
void DriverFootprint::take_back(Step& step) {
    is_locked();
    const uint64_t foreseen = std::exchange(step.foreseen_, 0), left = bytes() - foreseen;
    const uint64_t old = charged_of(bytes()), now = charged_of(left);
    foreseen_.fetch_sub(foreseen, std::memory_order_relaxed);
    uint64_t old_begin = 0, begin = 0;
    for (const Share& share : step.shares_) {
        const uint64_t old_end = share.up_to(old), end = share.up_to(now);
        const uint64_t was = old_end - old_begin;
        if (was != end - begin)
            share.budget->undo(was, end - begin);
        old_begin = old_end, begin = end;
    }
    bytes_.store(left, std::memory_order_relaxed);
}

void DriverFootprint::cancel(Step& step) {
    const LockGuard lock(*mutex_);
    take_back(step);
    if (step.open_)
        count_step(false);
}

void DriverFootprint::after(Step& step, const State& state, const Budgets& budgets) {
    step.part_ = nullptr;
    {
        // The foreseen bytes count as taken until more is known.
        const LockGuard lock(*mutex_);
        foreseen_.fetch_sub(std::exchange(step.foreseen_, 0), std::memory_order_relaxed);
        if (step.open_)
            count_step(false);
        unsettled_ = unsettled_ || step.open_;
    }
    if (read_process(state, budgets) || exact())
        return note_first_context(step);
    const Look look = at_rest(budgets, [&](int64_t rest) {
        is_locked();
        const bool known = step.known_ && marked_;
        know_contexts(state, step.open_);
        attribute_context(rest, known ? kMaxBytes : measured() + first_context_at_most_, state, budgets.shares);
        // Growth of the driver's footprint is the context's if no other step has begun or ended since.
        if (step.makes_context_ && step_count() == step.count_ + 1)
            made_context(step.before_);
    });
    if (look == Look::settled)
        look_past_nvml(budgets.shares);
}

void DriverFootprint::meet(const State& state, const Budgets& budgets) {
    if (read_process(state, budgets) || exact())
        return;
    const Look look = at_rest(budgets, [&](int64_t rest) {
        is_locked();
        const uint64_t before = measured();
        const bool alone = open_steps_ == 0 && !unsettled_;
        know_contexts(state, 0);
        attribute_context(rest, before + first_context_at_most_, state, budgets.shares);
        if (alone)
            made_context(before);
    });
    if (look == Look::settled)
        look_past_nvml(budgets.shares);
}

// A context takes memory. Where NVML's sum shows none, as it may not see this process's, CUDA's own is asked.
void DriverFootprint::look_past_nvml(std::span<const Share> shares) {
    uint64_t free = 0, total = 0, seen = 0;
    if (bytes() != 0 || nvml_.used_by_all(&seen) != Reading::ok || !free_memory_(&free, &total))
        return;
    const uint64_t used = total - free;
    const LockGuard lock(*mutex_);
    if (bytes() != 0 || used <= seen)
        return;
    base_ = std::min(used - seen, first_context_at_most_);
    set(base_, shares);
    made_context(0);
}

bool DriverFootprint::refresh(const State& state, const Budgets& budgets) {
    bool compared = true;
    if (read_process(state, budgets, &compared) || exact())
        return compared;
    {
        const LockGuard lock(*mutex_);
        if (!marked_)
            return true;
    }
    const Look look = at_rest(budgets, [&](int64_t rest) {
        is_locked();
        know_contexts(state, 0);
        attribute(rest, kMaxBytes, budgets.shares);
    });
    return look != Look::busy;
}

// The comparison means something only while no allocation is between our charge and the driver's. A few tries; a busy
// program keeps the last figure and is measured at the next occasion. True if NVML has a figure of this process.
bool DriverFootprint::read_process(const State& state, const Budgets& budgets, bool* compared) {
    if (!pid_)
        return false;
    if (compared)
        *compared = false;
    unlisted_.look();
    for (int i = 0; i < kTries; i++) {
        const uint64_t frees = frees_->snapshot();
        const Moment now(budgets);
        uint64_t process = 0;
        const Reading reading = nvml_.used_by_process(pid_, &process);
        // Silence is not zero: the last figure stands. That NVML has dropped us from its list means that we hold
        // nothing if it had listed us, and no context of ours is there.
        const bool gone = reading == Reading::absent && exact() && !state.contexts;
        if (reading != Reading::ok && !gone) {
            if (compared)
                *compared = true;
            return false;
        }
        if (budgets.reread)
            budgets.reread(budgets.self);
        source_.store(Source::process, std::memory_order_relaxed);
        const LockGuard lock(*mutex_);
        if (!now.settled() || !frees_->settled(frees))
            continue;
        const uint64_t counted = now.used() - Budget::charged(charged_of(bytes())) - unlisted_.bytes();
        // With managed memory alive the figure leaves a range; what was known before stands unless it is outside.
        const uint64_t least = process > counted ? process - counted : 0;
        const uint64_t sure = counted - std::min(counted, state.unsure);
        const uint64_t kept = measured() - std::min(measured(), taken_over_);
        taken_over_ = 0;
        unsettled_ = false;
        if (compared)
            *compared = true;
        set(std::clamp(kept, least, std::max(least, process > sure ? process - sure : 0)), budgets.shares);
        return true;
    }
    const LockGuard lock(*mutex_);
    unsettled_ = true;
    return true;
}

}  // namespace cuslice
