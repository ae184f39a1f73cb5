#include "policy/ledger/membership.h"

#include <errno.h>

#include <algorithm>

#include "policy/ledger/liveness.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

// What a member's lanes hold together.
std::uint64_t sum_of(const Lane* first) {
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < kLanes; i++) sum += first[i].held.load(std::memory_order_relaxed);
    return sum > 0 ? static_cast<std::uint64_t>(sum) : 0;
}

std::atomic<unsigned> next_hint{1};
constinit thread_local unsigned hint = 0;  // which lane this thread tries first, counted from 1; 0: not chosen yet

}  // namespace

class Membership::InLane {
  public:
    explicit InLane(Membership& membership) : membership_(membership) {
        if (!hint) hint = next_hint.fetch_add(1, std::memory_order_relaxed);
        lane_ = hint % kLanes;
        for (unsigned i = 0; i < kLanes; i++, lane_ = (lane_ + 1) % kLanes)
            if (membership_.mutexes_[lane_].mutex.try_lock()) return;
        membership_.mutexes_[lane_].mutex.lock();
    }
    ~InLane() { membership_.mutexes_[lane_].mutex.unlock(); }
    InLane(const InLane&) = delete;
    InLane& operator=(const InLane&) = delete;

    std::uint32_t number() const { return membership_.number_ * kLanes + lane_; }
    Lane& lane() const { return membership_.lanes_[number()]; }

  private:
    Membership& membership_;
    std::uint32_t lane_ = 0;
};

bool Membership::reserve(std::uint64_t bytes, std::uint64_t margin, std::uint64_t* seen) {
    const std::uint64_t top = limit();
    const std::uint64_t ceiling = top == kNoLimit ? top : top > margin ? top - margin : 0;
    const InLane in(*this);
    if (const std::uint64_t now = now_monotonic_seconds(); in.lane().last_use.load(std::memory_order_relaxed) != now)
        [[unlikely]] {
        in.lane().last_use.store(now, std::memory_order_relaxed);
        if (is_lost()) {
            if (seen) *seen = used();
            return false;
        }
    }
    if (bytes > INT64_MAX) {
        if (seen) *seen = used();
        return false;
    }
    return ledger::change(account_->total, lanes_, in.number(), static_cast<std::int64_t>(bytes), ceiling, seen);
}

[[gnu::cold, gnu::noinline]] bool Membership::is_lost() const {
    const int saved_errno = errno;
    const bool lost = looks_gone(open_, path_);
    errno = saved_errno;
    return lost;
}

void Membership::change(std::int64_t bytes) {
    if (!bytes) return;
    const InLane in(*this);
    ledger::change(account_->total, lanes_, in.number(), bytes, kNoLimit);
}

std::uint64_t Membership::held() const {
    // In the old file or in the new one, where they are just being exchanged.
    const Lane* first =
        __atomic_load_n(&lanes_, __ATOMIC_ACQUIRE) + __atomic_load_n(&number_, __ATOMIC_RELAXED) * kLanes;
    return sum_of(first);
}

void Membership::caches(std::uint64_t bytes) {
    const auto mebibytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes >> 20, UINT32_MAX - 1));
    const InLane in(*this);
    file_->members[number_].caches.store(1 + mebibytes, std::memory_order_relaxed);
}

bool Membership::want(std::uint64_t bytes, std::uint64_t* state) {
    const InLane in(*this);
    const auto account = static_cast<std::uint32_t>(account_ - file_->accounts);
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < file_->header.members && i < kMembers; i++) {
        const Member& member = file_->members[i];
        if (i == number_ || member.state.load() != MemberState::live || member.account != account) continue;
        const std::uint32_t caches = member.caches.load(std::memory_order_relaxed);
        if (!caches) continue;
        const std::uint64_t held = sum_of(lanes_ + i * kLanes);
        sum += held;
        *state = *state * 31 + held + caches;
    }
    if (sum < bytes) return false;
    account_->wanted.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void Membership::forget() {
    account_ = nullptr;
    for (LaneMutex& lane : mutexes_) lane.mutex.reset();
}

void Membership::remember() {
    const std::uint64_t said = account_->limit.load();
    __atomic_store_n(&terms_.limit, said >> kMostBits ? limit_of_damaged(said) : said, __ATOMIC_RELAXED);
    terms_.reserved = account_->reserved.load();
}

// No thread is in a lane meanwhile. Those that read a figure may still do so in the old file, which stays mapped.
void Membership::move_to(const OpenFile& open, std::uint32_t index, std::uint32_t number) {
    File* const file = open.file;
    for (LaneMutex& lane : mutexes_) lane.mutex.lock();
    // Less what the place has already, which was entered for it.
    std::int64_t more = static_cast<std::int64_t>(held());
    for (std::uint32_t lane = number * kLanes; lane < (number + 1) * kLanes; lane++)
        more = plus(more, minus(file->lanes[lane].held.load()));
    if (more) ledger::change(file->accounts[index].total, file->lanes, number * kLanes, more, kNoLimit);
    open_ = open;
    file->members[number].caches.store(file_->members[number_].caches.load());
    file_ = file;
    __atomic_store_n(&lanes_, &file->lanes[0], __ATOMIC_RELEASE);
    __atomic_store_n(&number_, number, __ATOMIC_RELAXED);
    __atomic_store_n(&account_, &file->accounts[index], __ATOMIC_RELEASE);
    for (LaneMutex& lane : mutexes_) lane.mutex.unlock();
}

}  // namespace cuslice::ledger
