// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/membership.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

// Bytes that a member's stripes hold together.
uint64_t sum_of(const Stripe* first) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < kStripes; i++)
        sum += first[i].held.load(std::memory_order_relaxed);
    return sum > 0 ? static_cast<uint64_t>(sum) : 0;
}

// A member that is busy may begin something between each two looks.
constexpr int kLooks = 4;

uint64_t begun_in(const Stripe* first) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < kStripes; i++)
        sum += first[i].begun.load();
    return sum;
}

uint64_t completed_in(const Stripe* first) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < kStripes; i++)
        sum += first[i].completed.load();
    return sum;
}

std::atomic<unsigned> next_hint{1};
constinit thread_local unsigned hint = 0;  // which stripe this thread tries first, counted from 1; 0: not chosen yet

}  // namespace

class Membership::InStripe {
  public:
    explicit InStripe(const Membership& membership) : membership_(membership) {
        if (!hint)
            hint = next_hint.fetch_add(1, std::memory_order_relaxed);
        stripe_ = hint % kStripes;
        for (unsigned i = 0; i < kStripes; i++, stripe_ = (stripe_ + 1) % kStripes)
            if (membership_.mutexes_[stripe_].mutex.try_lock())
                return;
        membership_.mutexes_[stripe_].mutex.lock();
    }
    ~InStripe() { membership_.mutexes_[stripe_].mutex.unlock(); }
    InStripe(const InStripe&) = delete;
    InStripe& operator=(const InStripe&) = delete;

    uint32_t number() const { return membership_.number_ * kStripes + stripe_; }
    Stripe& stripe() const { return membership_.stripes_[number()]; }

  private:
    const Membership& membership_;
    uint32_t stripe_ = 0;
};

bool Membership::reserve(uint64_t bytes, uint64_t margin, uint64_t* seen) {
    const uint64_t top = limit();
    const uint64_t ceiling = top == kNoLimit ? top : top > margin ? top - margin : 0;
    const InStripe in(*this);
    if (const uint64_t now = now_monotonic_seconds(); in.stripe().last_use.load(std::memory_order_relaxed) != now)
        [[unlikely]] {
        in.stripe().last_use.store(now, std::memory_order_relaxed);
        if (is_lost()) {
            if (seen)
                *seen = used();
            return false;
        }
    }
    if (bytes > INT64_MAX) {
        if (seen)
            *seen = used();
        return false;
    }
    return ledger::change(account_->total, nullptr, stripes_, in.number(), static_cast<int64_t>(bytes), ceiling, seen);
}

[[gnu::cold, gnu::noinline]] bool Membership::is_lost() const {
    const int saved_errno = errno;
    const bool lost = looks_gone(open_, path_);
    errno = saved_errno;
    return lost;
}

void Membership::change(int64_t bytes) {
    if (!bytes)
        return;
    const InStripe in(*this);
    ledger::change(account_->total, &account_->peak, stripes_, in.number(), bytes, kNoLimit);
}

void Membership::undo(uint64_t bytes) {
    const InStripe in(*this);
    ledger::change(account_->total, nullptr, stripes_, in.number(), minus(static_cast<int64_t>(bytes)), kNoLimit);
}

uint64_t Membership::held() const {
    // In the old file or in the new one, where they are just being exchanged.
    return sum_of(__atomic_load_n(&own_, __ATOMIC_ACQUIRE));
}

void Membership::caches(uint64_t bytes) {
    const auto mebibytes = static_cast<uint32_t>(std::min<uint64_t>(bytes >> 20, UINT32_MAX - 1));
    const InStripe in(*this);
    file_->members[number_].caches.store(1 + mebibytes, std::memory_order_relaxed);
}

bool Membership::want(uint64_t bytes, uint64_t* state) {
    const InStripe in(*this);
    const uint32_t account = index_of(*file_, account_);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < file_->header.members && i < kMembers; i++) {
        const Member& member = file_->members[i];
        if (i == number_ || !is_live_in(member, account))
            continue;
        const uint32_t caches = member.caches.load(std::memory_order_relaxed);
        if (!caches)
            continue;
        const uint64_t held = sum_of(stripes_ + size_t{i} * kStripes);
        sum += held;
        *state = *state * 31 + held + caches;
    }
    if (sum < bytes)
        return false;
    account_->wanted.fetch_add(1, std::memory_order_relaxed);
    return true;
}

CachingMember Membership::largest_caching() const {
    CachingMember largest;
    const InStripe in(*this);
    const uint32_t account = index_of(*file_, account_);
    for (uint32_t i = 0; i < file_->header.members && i < kMembers; i++) {
        const Member& member = file_->members[i];
        if (i == number_ || !is_live_in(member, account))
            continue;
        const uint64_t held = sum_of(stripes_ + size_t{i} * kStripes);
        if (member.caches.load(std::memory_order_relaxed) == 0 || held <= largest.bytes)
            continue;
        largest = {held, member.pid, member.pid_namespace == own_pid_namespace()};
        static_assert(sizeof largest.command == sizeof member.command);
        memcpy(largest.command, member.command, sizeof member.command);
        largest.command[sizeof largest.command - 1] = '\0';
    }
    largest.is_stopped = largest.is_here && is_stopped(largest.pid);
    return largest;
}

Holdings Membership::look_at_members(const Membership* whole) const {
    const Holdings all = whole ? whole->look_at_members(nullptr) : Holdings{};
    Holdings now;
    const InStripe in(*this);
    const uint32_t account = index_of(*file_, account_);
    now.file = file_;
    for (uint32_t i = 0; i < file_->header.members && i < kMembers && now.count < Holdings::kMax; i++) {
        const Member& member = file_->members[i];
        if (!is_live_in(member, account) || member.role != MemberRole::user)
            continue;
        const Stripe* const stripes = stripes_ + size_t{i} * kStripes;
        const uint64_t begun = begun_in(stripes);
        const uint64_t settled = member.settled.load();
        const bool quiet = i != number_ && completed_in(stripes) == begun && settled == begun + 1;
        const uint64_t held = sum_of(stripes);
        now.list[now.count++] = {i, member.pid, member.pid_namespace, begun, held, quiet && begun_in(stripes) == begun};
    }
    for (unsigned i = 0; i < now.count; i++) {
        Holdings::One& one = now.list[i];
        const Holdings::One* const on_gpu = all.find(one.pid, one.pid_namespace);
        if (on_gpu && on_gpu->held > one.held)
            one.elsewhere = on_gpu->held - one.held;
    }
    return now;
}

bool Membership::unchanged(const Holdings& then) const {
    const InStripe in(*this);
    if (then.file != file_)
        return false;
    for (unsigned i = 0; i < then.count; i++) {
        const Holdings::One& one = then.list[i];
        const Member& member = file_->members[one.member];
        if (!one.settled)
            continue;
        if (!is_live(member) || member.pid != one.pid)
            return false;
        const bool same = begun_in(stripes_ + size_t{one.member} * kStripes) == one.operations;
        if (!same || member.settled.load() != one.operations + 1)
            return false;
    }
    return true;
}

bool Membership::reserve_given_back(uint64_t bytes, uint64_t margin, const Figures& figures, const Membership* whole,
                                    uint64_t* more) {
    const uint64_t top = limit();
    *more = 0;
    if (bytes > INT64_MAX || top == kNoLimitBytes || bytes > top)
        return false;
    for (int i = 0; i < kLooks; i++) {
        const Holdings then = look_at_members(whole);
        *more = then.given_back(figures);
        if (!*more)
            return false;
        {
            const uint64_t most = top + *more;
            const InStripe in(*this);
            if (!ledger::change(account_->total, nullptr, stripes_, in.number(), static_cast<int64_t>(bytes),
                                most > margin ? most - margin : 0))
                return false;
        }
        if (unchanged(then))
            return true;
        undo(bytes);
    }
    return false;
}

bool Membership::within_given_back(const Figures& figures, const Membership* whole) const {
    for (int i = 0; i < kLooks; i++) {
        if (used() <= limit())
            return true;
        const Holdings then = look_at_members(whole);
        const uint64_t more = then.given_back(figures);
        const uint64_t now = used(), top = limit();
        if (!unchanged(then))
            continue;
        return now <= top || now - top <= more;
    }
    return false;
}

uint64_t Membership::operations() const { return begun_in(__atomic_load_n(&own_, __ATOMIC_ACQUIRE)); }

void Membership::settled_after(uint64_t operations) {
    const InStripe in(*this);
    file_->members[number_].settled.store(operations + 1);
}

void Membership::not_settled() {
    const InStripe in(*this);
    file_->members[number_].settled.store(0);
}

void Membership::forget() { account_ = nullptr; }

void Membership::remember() {
    const uint64_t said = account_->limit.load();
    __atomic_store_n(&terms_.limit, said >> kMaxBits ? limit_of_damaged(said) : said, __ATOMIC_RELAXED);
    terms_.reserved = account_->reserved.load();
}

// No thread is in a stripe meanwhile. Those that read a figure may still do so in the old file, which stays mapped.
void Membership::move_to(const OpenFile& open, uint32_t index, uint32_t number) {
    File* const file = open.file;
    for (StripeMutex& stripe : mutexes_)
        stripe.mutex.lock();
    // Less what the place has already, which was entered for it.
    int64_t more = static_cast<int64_t>(held());
    for (uint32_t stripe = number * kStripes; stripe < (number + 1) * kStripes; stripe++)
        more = plus(more, minus(file->stripes[stripe].held.load()));
    Account& account = file->accounts[index];
    if (more)
        ledger::change(account.total, &account.peak, file->stripes, number * kStripes, more, kNoLimit);
    note_peak(account.peak, peak_of(account_->total, account_->peak));
    open_ = open;
    file->members[number].caches.store(file_->members[number_].caches.load());
    file_ = file;
    stripes_ = file->stripes;
    number_ = number;
    __atomic_store_n(&own_, stripes_ + size_t{number} * kStripes, __ATOMIC_RELEASE);
    __atomic_store_n(&account_, &file->accounts[index], __ATOMIC_RELEASE);
    for (StripeMutex& stripe : mutexes_)
        stripe.mutex.unlock();
}

}  // namespace cuslice::ledger
