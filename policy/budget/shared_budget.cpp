// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/shared_budget.h"

#include <string.h>

#include <algorithm>

namespace cuslice {

namespace {

// 0 where there is less than what is taken off.
uint64_t less(uint64_t bytes, uint64_t taken_off) { return bytes - std::min(bytes, taken_off); }

}  // namespace

ledger::Joined SharedBudget::join(ledger::Ledger& ledger, const ledger::Request& request, uint64_t in_use,
                                  ledger::Committed* committed, uint64_t* available, ledger::LedgerError* why) {
    const unsigned next = count();
    if (next == kMax)
        return ledger::Joined::unavailable;
    const ledger::Joined joined = ledger.join(request, in_use, &members_[next], committed, available, why);
    if (joined != ledger::Joined::yes)
        return joined;
    count_.store(next + 1, std::memory_order_release);
    joined_.store(true, std::memory_order_release);
    return joined;
}

bool SharedBudget::reserve(uint64_t bytes, LimitError* why) {
    if (!reserve_here(bytes, why))
        return false;
    if (!outer_ || outer_->reserve(bytes, why))
        return true;
    if (why && why->of == LimitOf::job)
        why->of = LimitOf::whole_gpu;
    for (unsigned i = 0, n = count(); i < n; i++)
        members_[i].undo(bytes);
    return false;
}

bool SharedBudget::reserve_here(uint64_t bytes, LimitError* why) {
    const uint64_t margin = margin_.load(std::memory_order_relaxed);
    for (unsigned i = 0, n = count(); i < n; i++) {
        uint64_t seen = 0;
        if (members_[i].reserve(bytes, margin, &seen))
            continue;
        if (why) {
            const uint64_t mine = members_[i].held(), top = members_[i].limit();
            *why = {.requested = bytes,
                    .used = seen,
                    .ceiling = less(top, margin),
                    .others = less(seen, mine),
                    .limit = top,
                    .of = of(i)};
        }
        while (i-- > 0)
            members_[i].undo(bytes);
        return false;
    }
    return true;
}

const ledger::Membership* SharedBudget::whole(unsigned i) const {
    const char* const name = members_[i].account().name;
    for (unsigned j = 0, n = outer_ ? outer_->count() : 0; j < n; j++) {
        const ledger::Account& account = outer_->members_[j].account();
        if (account.kind == members_[i].account().kind && strcmp(account.name, name) == 0)
            return &outer_->members_[j];
    }
    return nullptr;
}

bool SharedBudget::reserve_given_back(uint64_t bytes, const ledger::Figures& figures, LimitError* why) {
    const uint64_t margin = margin_.load(std::memory_order_relaxed);
    uint64_t more = 0;
    unsigned i = 0;
    for (const unsigned n = count(); i < n; i++)
        if (!members_[i].reserve(bytes, margin, nullptr) &&
            !members_[i].reserve_given_back(bytes, margin, figures, whole(i), &more))
            break;
    if (i == count() && (!outer_ || outer_->reserve_given_back(bytes, figures, why)))
        return true;
    if (why && i < count() && why->of == of(i)) {
        more = std::min(more, why->others);
        why->others -= more;
        why->used -= more;
    }
    while (i-- > 0)
        members_[i].undo(bytes);
    return false;
}

bool SharedBudget::within_given_back(const ledger::Figures& figures) const {
    for (unsigned i = 0, n = count(); i < n; i++)
        if (!members_[i].within_given_back(figures, whole(i)))
            return false;
    return !outer_ || outer_->within_given_back(figures);
}

SharedBudget::Operations SharedBudget::operations() const {
    Operations operations;
    for (unsigned i = 0, n = count(); i < n; i++)
        operations.count[i] = members_[i].operations();
    return operations;
}

void SharedBudget::settled_after(const Operations& operations) {
    for (unsigned i = 0, n = count(); i < n; i++)
        members_[i].settled_after(operations.count[i]);
}

void SharedBudget::not_settled() {
    for (unsigned i = 0, n = count(); i < n; i++)
        members_[i].not_settled();
}

void SharedBudget::change(int64_t bytes) {
    for (unsigned i = 0, n = count(); i < n; i++)
        members_[i].change(bytes);
    if (outer_)
        outer_->change(bytes);
}

void SharedBudget::undo(uint64_t bytes) {
    for (unsigned i = 0, n = count(); i < n; i++)
        members_[i].undo(bytes);
    if (outer_)
        outer_->undo(bytes);
}

uint64_t SharedBudget::limit() const {
    uint64_t least = outer_ ? outer_->limit() : ledger::kNoLimitBytes;
    for (unsigned i = 0, n = count(); i < n; i++)
        least = std::min(least, members_[i].limit());
    return least;
}

[[gnu::always_inline]] inline uint64_t SharedBudget::room_within(uint64_t least, uint64_t given_back) const {
    const uint64_t margin = margin_.load(std::memory_order_relaxed);
    for (unsigned i = 0, n = count(); i < n; i++) {
        const uint64_t gone = less(members_[i].used(), given_back) + margin;
        least = std::min(least, less(members_[i].limit(), gone));
    }
    return least;
}

uint64_t SharedBudget::room() const { return room_within(outer_ ? outer_->room() : ledger::kNoLimitBytes, 0); }

uint64_t SharedBudget::room_after(uint64_t given_back) const {
    return room_within(outer_ ? outer_->room_after(given_back) : ledger::kNoLimitBytes, given_back);
}

bool SharedBudget::retired() const {
    for (unsigned i = 0, n = count(); i < n; i++)
        if (members_[i].retired())
            return true;
    return outer_ && outer_->retired();
}

uint64_t SharedBudget::job_peak() const {
    for (unsigned i = count(); i-- > 0;)
        if (of(i) == LimitOf::job)
            return members_[i].peak();
    return 0;
}

const ledger::GroupTerms* SharedBudget::found_group() const {
    for (unsigned i = 0, n = count(); i < n; i++)
        if (of(i) == LimitOf::group)
            return &members_[i].found();
    return nullptr;
}

bool SharedBudget::over(LimitError* why) const {
    for (unsigned i = 0, n = count(); i < n; i++) {
        const uint64_t used = members_[i].used(), top = members_[i].limit(), mine = members_[i].held();
        if (used <= top)
            continue;
        if (why)
            *why = {.used = used, .ceiling = top, .others = less(used, mine), .limit = top, .of = of(i)};
        return true;
    }
    if (!outer_ || !outer_->over(why))
        return false;
    if (why && why->of == LimitOf::job)
        why->of = LimitOf::whole_gpu;
    return true;
}

void SharedBudget::caches(uint64_t bytes) {
    for (unsigned i = 0, n = count(); i < n; i++)
        members_[i].caches(bytes);
    if (outer_)
        outer_->caches(bytes);
}

uint32_t SharedBudget::wanted() const {
    uint32_t sum = outer_ ? outer_->wanted() : 0;
    for (unsigned i = 0, n = count(); i < n; i++)
        sum += members_[i].wanted();
    return sum;
}

ledger::CachingMember SharedBudget::largest_caching() const {
    ledger::CachingMember largest = outer_ ? outer_->largest_caching() : ledger::CachingMember{};
    for (unsigned i = 0, n = count(); i < n; i++) {
        const ledger::CachingMember one = members_[i].largest_caching();
        if (one.bytes > largest.bytes)
            largest = one;
    }
    return largest;
}

bool SharedBudget::want(uint64_t bytes, uint64_t* state) {
    bool asked = false;
    *state = 0;
    return ask(bytes, &asked, state) && asked;
}

// False if an account is short of more than its other members could give back.
bool SharedBudget::ask(uint64_t bytes, bool* asked, uint64_t* state) {
    const uint64_t margin = margin_.load(std::memory_order_relaxed);
    for (unsigned i = 0, n = count(); i < n; i++) {
        const uint64_t limit = members_[i].limit(), gone = members_[i].used() + margin;
        if (bytes <= less(limit, gone))
            continue;
        if (bytes > limit || !members_[i].want(gone + bytes - limit, state))
            return false;
        *asked = true;
    }
    return !outer_ || outer_->ask(bytes, asked, state);
}

void SharedBudget::forget() {
    outer_ = nullptr;
    joined_.store(false, std::memory_order_release);
    count_.store(0, std::memory_order_release);
    for (ledger::Membership& member : members_)
        member.forget();
}

}  // namespace cuslice
