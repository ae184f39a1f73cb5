// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/shared_budget.h"

#include <string.h>

#include <algorithm>

namespace cuslice {

namespace {

// 0 where there is less than what is taken off.
uint64_t less(uint64_t bytes, uint64_t taken_off) { return bytes - std::min(bytes, taken_off); }

// An outer budget's job is the whole GPU's to whoever has a part.
void call_whole_gpu(LimitError* why) {
    if (why && why->of == LimitOf::job)
        why->of = LimitOf::whole_gpu;
}

}  // namespace

ledger::Joined SharedBudget::join(ledger::Ledger& ledger, const ledger::Request& request, uint64_t in_use,
                                  ledger::Committed* committed, uint64_t* available, ledger::LedgerError* why) {
    const size_t next = members().size();
    if (next == kMax)
        return ledger::Joined::unavailable;
    const ledger::Joined joined = ledger.join(request, in_use, &members_[next], committed, available, why);
    if (joined != ledger::Joined::yes)
        return joined;
    count_.store(static_cast<unsigned>(next) + 1, std::memory_order_release);
    joined_.store(true, std::memory_order_release);
    return joined;
}

template <typename Budget, typename Visit>
void SharedBudget::visit_all(Budget* budget, Visit visit) {
    for (; budget; budget = budget->outer_)
        for (auto& member : budget->members())
            visit(member);
}

void SharedBudget::undo_first(size_t count, uint64_t bytes) {
    for (ledger::Membership& member : members().first(count))
        member.undo(bytes);
}

bool SharedBudget::reserve(uint64_t bytes, LimitError* why) {
    if (!reserve_here(bytes, why))
        return false;
    if (!outer_ || outer_->reserve(bytes, why))
        return true;
    call_whole_gpu(why);
    for (ledger::Membership& member : members())
        member.undo(bytes);
    return false;
}

LimitError SharedBudget::refusal(const ledger::Membership& member, uint64_t bytes, uint64_t used, uint64_t margin) {
    const uint64_t mine = member.held(), top = member.limit();
    return {.requested = bytes,
            .used = used,
            .ceiling = less(top, margin),
            .others = less(used, mine),
            .limit = top,
            .of = of(member)};
}

// Apart, so that a reservation that is granted saves fewer registers.
[[gnu::cold, gnu::noinline]] void SharedBudget::refuse(unsigned by, uint64_t bytes, uint64_t seen, LimitError* why) {
    if (why)
        *why = refusal(members_[by], bytes, seen, margin_.load(std::memory_order_relaxed));
    undo_first(by, bytes);
}

bool SharedBudget::reserve_here(uint64_t bytes, LimitError* why) {
    const uint64_t margin = margin_.load(std::memory_order_relaxed);
    for (unsigned i = 0, n = count_.load(std::memory_order_acquire); i < n; i++) {
        uint64_t seen = 0;
        if (!members_[i].reserve(bytes, margin, &seen)) [[unlikely]] {
            refuse(i, bytes, seen, why);
            return false;
        }
    }
    return true;
}

const ledger::Membership* SharedBudget::whole(const ledger::Membership& member) const {
    if (!outer_)
        return nullptr;
    const ledger::Account& account = member.account();
    for (const ledger::Membership& one : outer_->members())
        if (one.account().kind == account.kind && strcmp(one.account().name, account.name) == 0)
            return &one;
    return nullptr;
}

bool SharedBudget::reserve_given_back(uint64_t bytes, const ledger::Figures& figures, LimitError* why) {
    const uint64_t margin = margin_.load(std::memory_order_relaxed);
    const std::span<ledger::Membership> all = members();
    uint64_t more = 0;
    const auto refused = std::ranges::find_if(all, [&](ledger::Membership& member) {
        return !member.reserve(bytes, margin, nullptr) &&
               !member.reserve_given_back(bytes, margin, figures, whole(member), &more);
    });
    const bool here = refused == all.end();
    if (here && (!outer_ || outer_->reserve_given_back(bytes, figures, why)))
        return true;
    if (why && !here && why->of == of(*refused)) {
        more = std::min(more, why->others);
        why->others -= more;
        why->used -= more;
    }
    undo_first(static_cast<size_t>(refused - all.begin()), bytes);
    return false;
}

bool SharedBudget::within_given_back(const ledger::Figures& figures) const {
    for (const ledger::Membership& member : members())
        if (!member.within_given_back(figures, whole(member)))
            return false;
    return !outer_ || outer_->within_given_back(figures);
}

SharedBudget::Operations SharedBudget::operations() const {
    Operations operations;
    for (size_t i = 0; const ledger::Membership& member : members())
        operations.count[i++] = member.operations();
    return operations;
}

void SharedBudget::settled_after(const Operations& operations) {
    for (size_t i = 0; ledger::Membership & member : members())
        member.settled_after(operations.count[i++]);
}

void SharedBudget::not_settled() {
    for (ledger::Membership& member : members())
        member.not_settled();
}

void SharedBudget::change(int64_t bytes) {
    for (ledger::Membership& member : members())
        member.change(bytes);
    if (outer_)
        outer_->change(bytes);
}

void SharedBudget::undo(uint64_t bytes) {
    for (ledger::Membership& member : members())
        member.undo(bytes);
    if (outer_)
        outer_->undo(bytes);
}

uint64_t SharedBudget::limit() const {
    uint64_t least = ledger::kNoLimitBytes;
    visit_all(this, [&](const ledger::Membership& member) { least = std::min(least, member.limit()); });
    return least;
}

[[gnu::always_inline]] inline uint64_t SharedBudget::room_within(uint64_t least, uint64_t given_back) const {
    const uint64_t margin = margin_.load(std::memory_order_relaxed);
    for (const ledger::Membership& member : members()) {
        const uint64_t gone = less(member.used(), given_back) + margin;
        least = std::min(least, less(member.limit(), gone));
    }
    return least;
}

uint64_t SharedBudget::room() const { return room_within(outer_ ? outer_->room() : ledger::kNoLimitBytes, 0); }

uint64_t SharedBudget::room_after(uint64_t given_back) const {
    return room_within(outer_ ? outer_->room_after(given_back) : ledger::kNoLimitBytes, given_back);
}

bool SharedBudget::retired() const {
    return std::ranges::any_of(members(), &ledger::Membership::retired) || (outer_ && outer_->retired());
}

uint64_t SharedBudget::job_peak() const {
    const std::span<const ledger::Membership> all = members();
    const auto is_job = [](const ledger::Membership& member) { return of(member) == LimitOf::job; };
    const auto innermost = std::find_if(all.rbegin(), all.rend(), is_job);
    return innermost == all.rend() ? 0 : innermost->peak();
}

const ledger::GroupTerms* SharedBudget::found_group() const {
    for (const ledger::Membership& member : members())
        if (of(member) == LimitOf::group)
            return &member.found();
    return nullptr;
}

bool SharedBudget::over(LimitError* why) const {
    for (const ledger::Membership& member : members()) {
        const uint64_t used = member.used();
        if (used <= member.limit())
            continue;
        if (why)
            *why = refusal(member, 0, used, 0);
        return true;
    }
    if (!outer_ || !outer_->over(why))
        return false;
    call_whole_gpu(why);
    return true;
}

void SharedBudget::caches(uint64_t bytes) {
    visit_all(this, [&](ledger::Membership& member) { member.caches(bytes); });
}

uint32_t SharedBudget::wanted() const {
    uint32_t sum = 0;
    visit_all(this, [&](const ledger::Membership& member) { sum += member.wanted(); });
    return sum;
}

ledger::CachingMember SharedBudget::largest_caching() const {
    ledger::CachingMember largest = outer_ ? outer_->largest_caching() : ledger::CachingMember{};
    for (const ledger::Membership& member : members()) {
        const ledger::CachingMember one = member.largest_caching();
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
    for (ledger::Membership& member : members()) {
        const uint64_t limit = member.limit(), gone = member.used() + margin;
        if (bytes <= less(limit, gone))
            continue;
        if (bytes > limit || !member.want(gone + bytes - limit, state))
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
