// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/budget/limit_error.h"
#include "policy/budget/shared_budget.h"

namespace cuslice {

// How many bytes of one GPU may be held, and how many are. Charged before the driver is asked:
//
//     reserve → the driver's allocation → commit, or roll_back
//     the driver's free → release
//     begin_release → the end of a context → end_release, or cancel_release
//
// An operation between its two ends is "in flight": its bytes are charged although the driver may not hold them yet (or
// any more), so that a comparison with the driver's own figure means something only while none is (see settled()).
//
// Where the limit is shared with other processes, the same is charged to the accounts it is shared in, after this one:
// both allow a reservation, or neither is charged.
//
// One 64-bit word holds both, and a generation that every new operation changes, so that every step is one atomic
// operation. Bytes are counted in units of 512, the granularity at which drivers hand memory out. Lock-free and safe
// from any thread.
class Budget {
  public:
    static constexpr uint64_t kUnit = 512;
    static constexpr uint64_t kUnlimited = ~0ull;

    // Bytes as they are charged: rounded up to whole units; saturates instead of wrapping.
    static constexpr uint64_t charged(uint64_t bytes) {
        constexpr uint64_t most = kMaxUnits * kUnit;
        return bytes > most ? most : (bytes + kUnit - 1) / kUnit * kUnit;
    }

    void set_ceiling(uint64_t bytes) { ceiling_.store(bytes, std::memory_order_relaxed); }
    uint64_t ceiling() const { return ceiling_.load(std::memory_order_relaxed); }
    uint64_t used() const { return units(state_.load(std::memory_order_acquire)) * kUnit; }

    // From now on all that is charged here is charged there too; what is charged already, at once. Before any other
    // thread can reserve.
    void share(SharedBudget& shared) {
        shared.change(static_cast<int64_t>(used()));
        shared_.store(&shared, std::memory_order_release);
    }
    // In a forked child.
    void unshare() { shared_.store(nullptr, std::memory_order_release); }

    // Takes `bytes` if they fit under the ceiling. On refusal nothing has changed and *why says what stood in the way.
    bool reserve(uint64_t bytes, LimitError* why = nullptr) {
        const uint64_t want = charged(bytes);
        if (!reserve_here(bytes, want, why))
            return false;
        SharedBudget* shared = shared_.load(std::memory_order_acquire);
        if (!shared || shared->reserve(want, why))
            return true;
        if (why)
            why->requested = bytes;
        give_back(want / kUnit + kOneInFlight);
        return false;
    }
    // The same, where the accounts count as free what their other members have given back to the driver.
    bool reserve_given_back(uint64_t bytes, const ledger::Figures& figures, LimitError* why) {
        const uint64_t want = charged(bytes);
        SharedBudget* shared = shared_.load(std::memory_order_acquire);
        if (!shared || !reserve_here(bytes, want, nullptr))
            return false;
        if (shared->reserve_given_back(want, figures, why))
            return true;
        give_back(want / kUnit + kOneInFlight);
        return false;
    }
    void commit() { state_.fetch_sub(kOneInFlight, std::memory_order_release); }
    void roll_back(uint64_t bytes) {
        give_back(charged(bytes) / kUnit + kOneInFlight);
        if (SharedBudget* shared = shared_.load(std::memory_order_acquire))
            shared->undo(charged(bytes));
    }

    // Uncharges memory that has gone back to the driver.
    void release(uint64_t bytes) {
        give_back(charged(bytes) / kUnit);
        change_shared(-static_cast<int64_t>(charged(bytes)));
    }

    void begin_release() { state_.fetch_add(kBegin, std::memory_order_acquire); }
    void end_release(uint64_t bytes) {
        give_back(charged(bytes) / kUnit + kOneInFlight);
        change_shared(-static_cast<int64_t>(charged(bytes)));
    }
    void cancel_release() { commit(); }

    // Charges or gives back what is a fact already, whatever the ceiling: the driver's own footprint, a pool's reserve.
    // Afterwards the total may be over the ceiling, and every reservation is refused until it is not.
    void adjust(uint64_t old_bytes, uint64_t new_bytes) {
        state_.fetch_add(charged(new_bytes) / kUnit - charged(old_bytes) / kUnit, std::memory_order_acq_rel);
        change_shared(static_cast<int64_t>(charged(new_bytes) - charged(old_bytes)));
    }

    // Ends a reservation of `reserved` bytes that made what is charged by adjust() grow from `old_bytes` to
    // `new_bytes`. In one step: nothing is counted twice meanwhile, in a peak neither.
    void become(uint64_t reserved, uint64_t old_bytes, uint64_t new_bytes) {
        const uint64_t taken = charged(reserved), before = charged(old_bytes), now = charged(new_bytes);
        state_.fetch_add(now / kUnit - before / kUnit - taken / kUnit - kOneInFlight, std::memory_order_acq_rel);
        SharedBudget* shared = shared_.load(std::memory_order_acquire);
        if (!shared)
            return;
        const uint64_t grown = now > before ? now - before : 0;
        if (taken > grown)
            shared->undo(taken - grown);  // never held
        if (grown > taken)
            shared->change(static_cast<int64_t>(grown - taken));
        if (now < before)
            shared->change(-static_cast<int64_t>(before - now));
    }

    // A moment of the total. settled(): nothing was in flight then, and nothing has happened since.
    struct Snapshot {
        uint64_t state = 0;
        uint64_t used() const { return units(state) * kUnit; }
    };
    Snapshot snapshot() const { return {state_.load(std::memory_order_acquire)}; }
    bool settled(const Snapshot& since) const {
        return (since.state & kAllInFlight) == 0 && state_.load(std::memory_order_acquire) == since.state;
    }

    // Gives back what adjust() has charged and was never held: it is in no peak.
    void undo(uint64_t old_bytes, uint64_t new_bytes) {
        const uint64_t less = charged(old_bytes) - charged(new_bytes);
        state_.fetch_sub(less / kUnit, std::memory_order_release);
        if (SharedBudget* shared = shared_.load(std::memory_order_acquire))
            shared->undo(less);
    }

  private:
    // From the low end: 38 bits of units (128 TiB), 12 of operations in flight, and the generation, which may wrap. It
    // is there because an allocation that comes and goes leaves the total as it was.
    static constexpr uint64_t kOneInFlight = 1ull << 38;
    static constexpr uint64_t kOneGeneration = 1ull << 50;
    static constexpr uint64_t kBegin = kOneInFlight + kOneGeneration;
    static constexpr uint64_t kAllInFlight = kOneGeneration - kOneInFlight;
    static constexpr uint64_t kMaxUnits = kOneInFlight - 1;
    static constexpr uint64_t units(uint64_t state) { return state & kMaxUnits; }

    // Without the accounts.
    [[gnu::always_inline]] bool reserve_here(uint64_t bytes, uint64_t want, LimitError* why) {
        const uint64_t top = ceiling();
        uint64_t state = state_.load(std::memory_order_relaxed);
        for (;;) {
            const uint64_t now = units(state) * kUnit;
            // In subtraction form: a huge request must not wrap round to a small sum.
            if (now > top || want > top - now || want / kUnit > kMaxUnits - units(state)) {
                if (why)
                    *why = {.requested = bytes, .used = now, .ceiling = top};
                return false;
            }
            if (state_.compare_exchange_weak(state, state + want / kUnit + kBegin, std::memory_order_acq_rel,
                                             std::memory_order_relaxed))
                return true;
        }
    }
    void give_back(uint64_t from_state) { state_.fetch_sub(from_state, std::memory_order_release); }
    void change_shared(int64_t bytes) {
        if (SharedBudget* shared = shared_.load(std::memory_order_acquire))
            shared->change(bytes);
    }

    alignas(64) std::atomic<uint64_t> state_{0};
    std::atomic<uint64_t> ceiling_{kUnlimited};
    std::atomic<SharedBudget*> shared_{nullptr};
};

}  // namespace cuslice
