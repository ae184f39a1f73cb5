// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/admission.h"

#include <stdio.h>
#include <string.h>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/foreign.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/locked.h"
#include "policy/ledger/queue.h"
#include "policy/ledger/rule_share.h"
#include "policy/ledger/unreserved.h"

namespace cuslice::ledger {

namespace {

// For all of a join, in which others' claims may have to be decided first.
constexpr unsigned kPatienceToJoin = 1000;  // milliseconds
// The part of it for claims of other users that come after this one. Then they count as granted: nobody holds others up
// by one that is never decided, and nothing is promised twice.
constexpr unsigned kPatienceWithOthers = 100;  // milliseconds
// For each look at the other users' files.
constexpr unsigned kPatienceToRead = 1000;  // milliseconds
constexpr unsigned kPatienceToLook = 1000;  // milliseconds

void say_no_account(LedgerError* why, AccountKind kind) {
    const bool group = kind == AccountKind::group;
    set_text(why, "a GPU's ledger has room for %u %s, and all of it is taken: wait until one has ended, or %s",
             group ? kMaxGroups : kAccounts, group ? "groups" : "jobs and groups",
             group ? "name a group that is there" : "start several programs with one cuslice run");
}

}  // namespace

void AdmissionControl::believes_others(uint64_t most_of_a_job) { others_most_.store(most_of_a_job); }

void AdmissionControl::reserves_under(const char* rule, uint64_t limit) {
    const DisablingLockGuard guard(roster.file.mutex());
    snprintf(rule_, sizeof rule_, "%s", rule ? rule : "");
    rule_limit_ = limit;
}

uint32_t AdmissionControl::enter_rule(const Joiner& self) {
    if (!rule_[0])
        return kMembers;
    Account* account = roster.find(AccountKind::rule, rule_);
    if (account && roster.places().has_any_in(roster.file, roster.index_of(account)))
        return kMembers;
    const bool first = !roster.has_members(account);
    if (!account)
        account = roster.make_account(AccountKind::rule);
    if (!account)
        return kMembers;
    const OwnPlace* const place = roster.places().take(roster.file, roster.index_of(account), self, nullptr);
    if (!place)
        return kMembers;
    if (first) {
        Terms terms{AccountKind::rule, true, {}, rule_limit_, 0};
        static_assert(sizeof terms.name == sizeof rule_);
        memcpy(terms.name, rule_, sizeof rule_);
        set_terms(account, terms);
        account->state.store(AccountState::open);
    }
    roster.file.contents().members[place->number].state.store(MemberState::live);
    return place->number;
}

void AdmissionControl::drop_claim(const Claim& claim) {
    roster.places().drop(roster.file, claim.place);
    roster.places().drop(roster.file, claim.place_in_rule);
}

// ---- joining --------------------------------------------------------------------------------------------------------

AdmissionControl::Step AdmissionControl::begin(const Request& request, const Joiner& self, bool may_claim,
                                               Membership* membership, Claim* claim, LedgerError* why) {
    roster.take_back_some_dead(roster.find(request.kind, request.name));
    Account* account = roster.find(request.kind, request.name);
    const bool known = account != nullptr, first = !roster.has_members(account);
    if (!known && request.made_in && request.made_in != roster.file.contents().header.id) {
        set_text(why,
                 "the ledger that this job began in was removed or damaged, and none of the job's processes has put it "
                 "back, or its folder is not mounted in this container, or the launcher is another user: nothing is "
                 "granted, for the limit could be exceeded; start the job again");
        return Step::lost;
    }
    if (!first && account->state.load() == AccountState::claimed)
        return Step::busy;
    const bool claims = first && request.reserved && !request.inner;
    if (claims && !may_claim)
        return Step::refused;
    const uint32_t place_in_rule = claims ? enter_rule(self) : kMembers;
    const auto fail = [&] {
        roster.file.mutex().is_held();
        roster.places().drop(roster.file, place_in_rule);
        return Step::failed;
    };
    if (!account)
        account = roster.make_account(request.kind);
    if (!account)
        return say_no_account(why, request.kind), fail();

    // First the place, then the claim: a claim without a living member is nobody's.
    OwnPlace* place = request.kind == AccountKind::rule && !roster.file.keeps_over_exec()
                          ? roster.places().empty_in(roster.file, roster.index_of(account))
                          : nullptr;
    if (!place)
        place = roster.places().take(roster.file, roster.index_of(account), self, why);
    if (!place && roster.take_back_dead())
        place = roster.places().take(roster.file, roster.index_of(account), self, why);
    if (!place)
        return fail();
    Member& member = roster.file.contents().members[place->number];
    membership->terms_ = {request.kind, request.inner, {}, request.limit, request.reserved};
    memcpy(membership->terms_.name, request.name, strlen(request.name));
    if (request.kind == AccountKind::group)
        membership->found_ = find_terms(roster.file.contents(), known ? account : nullptr, request.name);
    if (first) {
        set_terms(account, membership->terms_);
        roster.take_ticket();
        account->ticket =
            roster.ticket().placed() ? roster.ticket().order() : next_order(roster.file.contents().header);
    } else {
        roster.places().adopt_launcher(roster.file, roster.index_of(account), &member);
        // A rule's limit is the system's, which may have changed it by now.
        if (request.kind == AccountKind::rule)
            account->limit.store(request.limit);
        if (request.kind == AccountKind::group)
            bring_limit(account, request.limit);
    }
    member.state.store(MemberState::live);
    if (claims) {
        *claim = {roster.file.now().file, account, place, known, place_in_rule};
        return Step::claimed;
    }
    enter(account, place, membership);
    return Step::joined;
}

void AdmissionControl::enter(Account* account, OwnPlace* place, Membership* membership) {
    if (account->state.load() == AccountState::claimed)
        account->state.store(AccountState::open);
    place->membership = membership;
    membership->open_ = roster.file.now();
    membership->path_ = roster.file.path();
    membership->file_ = roster.file.now().file;
    membership->stripes_ = roster.file.contents().stripes;
    membership->number_ = place->number;
    membership->own_ = membership->stripes_ + size_t{place->number} * kStripes;
    __atomic_store_n(&membership->account_, account, __ATOMIC_RELEASE);
    membership->remember();
}

// The place is this process's alone; whoever has the lock next does away with an account without members.
void AdmissionControl::withdraw(const Claim& claim) {
    const DisablingLockGuard guard(roster.file.mutex());
    if (roster.file.now().file == claim.file)
        drop_claim(claim);
}

Joined AdmissionControl::join(const Request& request, uint64_t in_use, Membership* membership, Committed* committed,
                              uint64_t* available, LedgerError* why) {
    if (strlen(request.name) >= sizeof Account::name)
        return set_text(why, "the name is too long"), Joined::unavailable;
    Deadline deadline(kPatienceToJoin);
    const Joiner self(request.command);
    // A process that waits looks before it claims: until a claim is decided, others have to count it as granted.
    const bool may_claim =
        !queued() || !look(in_use, committed, available) || committed->fits(request.reserved, *available);
    Claim claim;
    for (Step step = Step::busy; step == Step::busy;) {
        {
            const Locked locked(roster, deadline, why);
            if (!locked)
                return Joined::unavailable;
            step = begin(request, self, may_claim, membership, &claim, why);
        }
        if (step == Step::joined)
            return Joined::yes;
        if (step == Step::refused)
            return Joined::refused;
        if (step == Step::lost)
            return Joined::lost;
        if (step == Step::failed)
            return Joined::unavailable;
        if (step == Step::busy && !deadline.pause())
            return set_text(why, "another process of the same job is being admitted"), Joined::unavailable;
    }

    const uint64_t ticket = claim.account->ticket;
    Deadline with_others(kPatienceWithOthers);
    for (;;) {
        *committed = {};
        committed->queue.asks(ticket);
        bool undecided = false;
        const Claims claims = with_others.passed() ? Claims::granted : Claims::open;
        // Waiting for the lock may have used the deadline up, as when hundreds of programs start at once.
        if (!add_foreign(roster.file, others_most_.load(), Deadline(kPatienceToRead), claims, committed, &undecided,
                         why)) {
            withdraw(claim);
            return Joined::unavailable;
        }
        {
            const Locked locked(roster, deadline, why);
            if (!locked)
                break;
            if (roster.file.now().file != claim.file)
                return set_text(why, "the ledger was removed"), Joined::unavailable;
            roster.take_back_dead();
            roster.file.folder().remove_leftovers(roster.file.contents());
            add_own(claim.account, committed, &undecided);
            if (!undecided || deadline.passed()) {
                *available = room(in_use, committed);
                if (committed->fits(request.reserved, *available)) {
                    note_granted(roster.file.contents().header, ticket);
                    roster.ticket().drop(roster.file.contents());
                    roster.ticket() = {};
                    return enter(claim.account, claim.place, membership), Joined::yes;
                }
                drop_claim(claim);
                claim.account->reserved.store(0);
                claim.account->state.store(claim.known ? AccountState::open : AccountState::free);
                return Joined::refused;
            }
        }
        if (!with_others.pause())
            deadline.pause();
    }
    withdraw(claim);
    return Joined::unavailable;
}

// ---- looking, and waiting -------------------------------------------------------------------------------------------

void AdmissionControl::add_own(const Account* but, Committed* committed, bool* undecided) {
    const File& file = roster.file.contents();
    const unsigned self = roster.file.folder().where().user;
    const uint64_t now = now_realtime();
    committed->queue.granted_all(file.header.granted, now);
    for (uint32_t i = 0; i < kTickets; i++)
        if (roster.ticket().is_at(i) || waits(file.tickets[i], roster.file.folder().where()))
            committed->queue.add(waiter_of(file.tickets[i], self, now));
    bool counted[kAccounts] = {};
    for (uint32_t i = 0; i < kAccounts; i++) {
        const Account& account = file.accounts[i];
        if (is_free(account) || account.inner)
            continue;
        const Member* first = first_member(file, i);
        if (!first)
            continue;
        if (&account == but)
            committed->used += __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED);
        else
            counted[i] = add_account(account, self, *first, true, committed, undecided);
    }
    committed->left_of_rule = rule_[0] ? rule_limit_ : kNoLimitBytes;
    const Contents contents{file.accounts, members_of(file)};
    count_rules(contents, counted, rule_[0] ? rule_ : nullptr, committed);
    add_unreserved(contents, file, self, committed);
}

// Bytes left for this request. Notes in `committed` how much of the rest is kept, and for whom.
uint64_t AdmissionControl::room(uint64_t in_use, Committed* committed) {
    const uint64_t outside = in_use > committed->used ? in_use - committed->used : 0;
    const uint64_t gone = committed->promised + outside;
    const uint64_t left = gone < roster.file.capacity() ? roster.file.capacity() - gone : 0;
    const uint64_t possible = outside < roster.file.capacity() ? roster.file.capacity() - outside : 0;
    const Waiter* kept_for = nullptr;
    const uint64_t had = committed->queue.room(left, possible, &kept_for);
    committed->kept = left - had;
    if (kept_for)
        committed->kept_for = *kept_for;
    committed->keeps =
        roster.ticket().placed() && roster.ticket().bytes() <= possible && committed->queue.past() >= kMaxPast;
    return had;
}

bool AdmissionControl::look(uint64_t in_use, Committed* committed, uint64_t* available) {
    const Deadline deadline(kPatienceToLook);
    bool undecided = false;
    *committed = {};
    committed->queue.asks(own_order());
    if (!roster.file.opened())
        return false;
    if (!add_foreign(roster.file, others_most_.load(), deadline, Claims::open, committed, &undecided, nullptr))
        return false;
    const Locked locked(roster, deadline);
    if (!locked)
        return false;
    roster.take_back_dead();
    roster.take_ticket();
    if (roster.ticket().placed())
        committed->queue.asks(roster.ticket().order());  // a ticket that it has just got, too
    add_own(nullptr, committed, &undecided);
    *available = room(in_use, committed);
    return true;
}

bool AdmissionControl::queued() const {
    const DisablingLockGuard guard(roster.file.mutex());
    return roster.ticket().placed();
}

// This process's number in the queue. A process that does not wait is behind all others.
uint64_t AdmissionControl::own_order() const {
    const DisablingLockGuard guard(roster.file.mutex());
    return roster.ticket().order();
}

void AdmissionControl::queue_up(uint64_t bytes, const char* command) {
    {
        const DisablingLockGuard guard(roster.file.mutex());
        if (!roster.file.there() || roster.ticket().waits())
            return;
    }
    const Locked locked(roster, Deadline(Locked::kPatience));
    roster.ticket().wait_for(bytes, command);
    if (!locked)
        return;
    roster.take_back_dead();
    roster.take_ticket();
}

// The ticket is this process's alone, so that no lock is needed but that of its threads.
void AdmissionControl::leave_queue() {
    const DisablingLockGuard guard(roster.file.mutex());
    if (roster.file.there())
        roster.ticket().drop(roster.file.contents());
    roster.ticket() = {};
}

void AdmissionControl::step_aside(bool aside) {
    const DisablingLockGuard guard(roster.file.mutex());
    roster.ticket().step_aside(roster.file.now().file, aside);
}

}  // namespace cuslice::ledger
