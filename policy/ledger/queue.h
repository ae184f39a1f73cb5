// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/layout.h"
#include "policy/ledger/liveness.h"

// Queue for memory of a GPU, over all users: who waits, and what is kept for whom.
//
// A request is served in the order in which it came, which is that of its number. One that fits may be granted past an
// older one that does not, but only so often; from then on what is left is kept for the older one.
namespace cuslice::ledger {

// So many later requests may be granted past one that waits.
inline constexpr unsigned kMaxPast = 3;
// A waiter that has not looked for so long, because it is stopped or hangs, keeps its place, and nothing is kept for
// it. Longer than the launcher waits for NVML's answer between two looks.
inline constexpr uint64_t kLooksWithin = 20'000'000'000;  // nanoseconds
// No number is later than the clock by more than this, which allows for a clock that was set back. One that is was
// written by nobody.
inline constexpr uint64_t kMaxAhead = 86'400'000'000'000;  // nanoseconds

struct Waiter {
    unsigned user = 0;
    int32_t pid = 0;
    uint64_t pid_namespace = 0, start_time = 0;  // what makes the pid mean one process: see ProcessIdentity
    uint64_t since = 0;                          // CLOCK_REALTIME, nanoseconds
    uint64_t order = 0;
    uint64_t bytes = 0;
    bool steps_back = false;  // nothing is kept for it: it has not looked, or something is kept for it on another GPU
    char command[48] = {};
};

// The latest requests that were granted, by their numbers: enough to say of any waiter how often it was passed, up to
// kLatest times. A request whose number is later than a waiter's was granted after that one began to wait.
class Granted {
  public:
    void note(uint64_t order);
    // Notes a file's numbers, which may be anything: one that is later than `now` by kMaxAhead or more is no number.
    void note_all(const uint64_t (&orders)[kLatest], uint64_t now);
    unsigned past(uint64_t order) const;
    const uint64_t (&orders() const)[kLatest] { return orders_; }

  private:
    uint64_t orders_[kLatest] = {};  // the earliest first
};

// The requests that wait, as they stand before one of them, or before one that is new.
class Queue {
  public:
    // So many of those in front are looked at one by one. Whatever passed the last of them passed the others too, so
    // once it has been passed too often, so have all of them.
    static constexpr unsigned kMax = 16;

    // Sets the request that asks. Until then it is one behind all others.
    void asks(uint64_t order) { order_ = order; }
    void add(const Waiter& waiter);
    // It has a claim, which counts as any other does: it must not count twice.
    void drop(unsigned user, uint64_t order);
    void granted(uint64_t order) { granted_.note(order); }
    void granted_all(const uint64_t (&orders)[kLatest], uint64_t now) { granted_.note_all(orders, now); }

    // How much of `left` bytes this request may have. A waiter in front that fits has it first. One that does not fit,
    // and was passed too often, keeps all of it, if it could be served at all were nothing reserved (`possible` bytes).
    // `*kept_for`: the first for whom something is kept; null: nobody.
    uint64_t room(uint64_t left, uint64_t possible, const Waiter** kept_for) const;

    uint64_t order() const { return order_; }
    // Position of this request, counted from 1, and the number of all, with this one if it waits.
    unsigned position() const { return ahead_ + 1; }
    unsigned total() const { return total_; }
    // How often this request was passed.
    unsigned past() const { return granted_.past(order_); }

  private:
    uint64_t order_ = ~0ull;
    Waiter front_[kMax];  // the oldest first, of those for whom something may be kept
    unsigned count_ = 0, ahead_ = 0, total_ = 0;
    Granted granted_;
};

/// True if a ticket is a living waiter's; see lives().
bool waits(const Ticket& ticket, const UserFolder& where);
// A ticket's waiter, for people and for a queue; `now`: CLOCK_REALTIME. Its text is bounded, the rest not believed.
Waiter waiter_of(const Ticket& ticket, unsigned user, uint64_t now);

}  // namespace cuslice::ledger
