// Joining: a place for this process, and a reservation if it is an account's first.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/ledger.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

// For all of a join, in which others' claims may have to be decided first.
constexpr unsigned kPatienceToJoin = 1000;  // milliseconds
// The part of it for claims of other users that come after this one. Then they count as granted: nobody holds others up
// by one that is never decided, and nothing is promised twice.
constexpr unsigned kPatienceWithOthers = 100;  // milliseconds
// For each look at the other users' files.
constexpr unsigned kPatienceToRead = 1000;  // milliseconds

void say(LedgerError* why, const char* text) {
    if (why) snprintf(why->text, sizeof why->text, "%s", text);
}

void say_no_account(LedgerError* why, AccountKind kind) {
    const bool group = kind == AccountKind::group;
    if (why)
        snprintf(why->text, sizeof why->text,
                 "a GPU's ledger has room for %u %s, and all of it is taken: wait until one has ended, or %s",
                 group ? kMaxGroups : kAccounts, group ? "groups" : "jobs and groups",
                 group ? "name a group that is there" : "start several programs with one cuslice run");
}

}  // namespace

// ---- places ---------------------------------------------------------------------------------------------------------

Joiner::Joiner(const char* text) : process(this_process()) {
    if (text)
        snprintf(command, sizeof command, "%s", text);
    else
        command_of_this_process(command, sizeof command);
}

Ledger::Place* Ledger::take_place(const Account* account, const Joiner& self, LedgerError* why) {
    File& file = *open_.file;
    if (mine_count_ == sizeof mine_ / sizeof mine_[0]) return say(why, "too many accounts for one process"), nullptr;
    std::uint32_t number = 0;
    while (number < kMembers && (file.members[number].state.load() != MemberState::free || is_mine(number))) number++;
    if (number == kMembers) return say(why, "there is no room for one more process"), nullptr;
    if (!make_room(open_, path_, number + 1)) return say(why, "there is no room for the ledger to grow"), nullptr;
    Place& place = mine_[mine_count_++];
    place = {};
    place.number = number;

    Member& member = file.members[number];
    member.account = index_of(account);
    member.caches.store(0);
    member.pid = self.process.pid;
    member.pid_namespace = self.process.pid_namespace;
    member.start_time = self.process.start_time;
    member.since = now_realtime();
    member.image = image_number();
    show_presence(number);
    member.role = keep_over_exec_ ? MemberRole::launcher : MemberRole::user;
    static_assert(sizeof member.command == sizeof self.command);
    memcpy(member.command, self.command, sizeof member.command);
    for (std::uint32_t stripe = 0; stripe < kStripes; stripe++)
        file.stripes[number * kStripes + stripe].last_use.store(now_monotonic_seconds());
    if (number >= file.header.members) file.header.members = number + 1;
    return &place;
}

void Ledger::believes_others(std::uint64_t most_of_a_job) { others_most_.store(most_of_a_job); }

void Ledger::reserves_under(const char* rule, std::uint64_t limit) {
    const DisablingLockGuard guard(mutex_);
    snprintf(rule_, sizeof rule_, "%s", rule ? rule : "");
    rule_limit_ = limit;
}

Ledger::Place* Ledger::empty_place(const Account* account) {
    for (unsigned i = 0; i < mine_count_; i++) {
        const Member& member = open_.file->members[mine_[i].number];
        if (!mine_[i].membership && member.account == index_of(account) && !is_launchers(member.role)) return &mine_[i];
    }
    return nullptr;
}

std::uint32_t Ledger::enter_rule(const Joiner& self) {
    if (!rule_[0]) return kMembers;
    Account* account = find(AccountKind::rule, rule_);
    for (unsigned i = 0; account && i < mine_count_; i++)
        if (open_.file->members[mine_[i].number].account == index_of(account)) return kMembers;
    const bool first = !account || !has_members(index_of(account));
    if (!account) account = make_account(AccountKind::rule);
    if (!account) return kMembers;
    const Place* const place = take_place(account, self, nullptr);
    if (!place) return kMembers;
    if (first) {
        Terms terms{AccountKind::rule, true, {}, rule_limit_, 0};
        static_assert(sizeof terms.name == sizeof rule_);
        memcpy(terms.name, rule_, sizeof rule_);
        set_terms(account, terms);
        account->state.store(AccountState::open);
    }
    open_.file->members[place->number].state.store(MemberState::live);
    return place->number;
}

void Ledger::leave_rule(std::uint32_t number) {
    for (unsigned i = 0; i < mine_count_; i++)
        if (mine_[i].number == number) return drop_place(&mine_[i]);
}

void Ledger::drop_claim(const Claim& claim) {
    drop_place(claim.place);
    leave_rule(claim.place_in_rule);
}

void Ledger::drop_place(Place* place) {
    open_.file->members[place->number].state.store(MemberState::free);
    *place = mine_[--mine_count_];
}

// The launcher that became this program keeps its place, and the reservation with it, for whatever the program becomes
// next. What the program holds is in a place of its own, which goes with the program. For people they are one.
void Ledger::adopt_launcher(const Account* account, Member* member) {
    File& file = *open_.file;
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++) {
        const Member& launcher = file.members[i];
        if (launcher.state.load() != MemberState::live || launcher.account != index_of(account) ||
            !is_launchers(launcher.role) || is_mine(i) || !is_this_process(launcher))
            continue;
        member->since = launcher.since;
        memcpy(member->command, launcher.command, sizeof member->command);
        if (is_carried(launcher.role)) return;  // it has no lock that an exec would keep, and needs none
        if (mine_count_ == sizeof mine_ / sizeof mine_[0]) return;
        if (!launchers_.adopt(where_, launcher.presence.load(), launcher.descriptor)) return;
        mine_[mine_count_] = {};
        mine_[mine_count_++].number = i;
        show_launchers();
        return;
    }
}

// Where none is free, dead processes may have all of them: a join looks at a few only (take_back_some_dead_locked).
Account* Ledger::make_account(AccountKind kind) {
    Account* const account = new_account(*open_.file, kind);
    if (account || !take_back_dead_locked()) return account;
    return new_account(*open_.file, kind);
}

// ---- joining --------------------------------------------------------------------------------------------------------

Ledger::Step Ledger::begin(const Request& request, const Joiner& self, bool may_claim, Membership* membership,
                           Claim* claim, LedgerError* why) {
    take_back_some_dead_locked(find(request.kind, request.name));
    Account* account = find(request.kind, request.name);
    const bool known = account != nullptr, first = !account || !has_members(index_of(account));
    if (!known && request.made_in && request.made_in != open_.file->header.id) {
        say(why,
            "the ledger that this job began in was removed or damaged, and none of the job's processes has put it "
            "back, or its folder is not mounted in this container, or the launcher is another user: nothing is "
            "granted, for the limit could be exceeded; start the job again");
        return Step::lost;
    }
    if (!first && account->state.load() == AccountState::claimed) return Step::busy;
    const bool claims = first && request.reserved && !request.inner;
    if (claims && !may_claim) return Step::refused;
    const std::uint32_t place_in_rule = claims ? enter_rule(self) : kMembers;
    const auto fail = [&] {
        mutex_.is_held();
        leave_rule(place_in_rule);
        return Step::failed;
    };
    if (!account) account = make_account(request.kind);
    if (!account) return say_no_account(why, request.kind), fail();

    // First the place, then the claim: a claim without a living member is nobody's.
    Place* place = request.kind == AccountKind::rule && !keep_over_exec_ ? empty_place(account) : nullptr;
    if (!place) place = take_place(account, self, why);
    if (!place && take_back_dead_locked()) place = take_place(account, self, why);
    if (!place) return fail();
    Member& member = open_.file->members[place->number];
    membership->terms_ = {request.kind, request.inner, {}, request.limit, request.reserved};
    memcpy(membership->terms_.name, request.name, strlen(request.name));
    if (request.kind == AccountKind::group)
        membership->found_ = find_terms(*open_.file, known ? account : nullptr, request.name);
    if (first) {
        set_terms(account, membership->terms_);
        take_ticket();
        account->ticket = waiting_.placed ? waiting_.order : next_order();
    } else {
        adopt_launcher(account, &member);
        // A rule's limit is the system's, which may have changed it by now.
        if (request.kind == AccountKind::rule) account->limit.store(request.limit);
        if (request.kind == AccountKind::group) bring_limit(account, request.limit);
    }
    member.state.store(MemberState::live);
    if (claims) {
        *claim = {open_.file, account, place, known, place_in_rule};
        return Step::claimed;
    }
    enter(account, place, membership);
    return Step::joined;
}

void Ledger::enter(Account* account, Place* place, Membership* membership) {
    if (account->state.load() == AccountState::claimed) account->state.store(AccountState::open);
    place->membership = membership;
    membership->open_ = open_;
    membership->path_ = path_;
    membership->file_ = open_.file;
    membership->stripes_ = open_.file->stripes;
    membership->number_ = place->number;
    __atomic_store_n(&membership->account_, account, __ATOMIC_RELEASE);
    membership->remember();
}

// The place is this process's alone; whoever has the lock next does away with an account without members.
void Ledger::withdraw(const Claim& claim) {
    const DisablingLockGuard guard(mutex_);
    if (open_.file == claim.file) drop_claim(claim);
}

Joined Ledger::join(const Request& request, std::uint64_t in_use, Membership* membership, Committed* committed,
                    std::uint64_t* available, LedgerError* why) {
    if (strlen(request.name) >= sizeof Account::name) return say(why, "the name is too long"), Joined::unavailable;
    Deadline deadline(kPatienceToJoin);
    const Joiner self(request.command);
    // A process that waits looks before it claims: until a claim is decided, others have to count it as granted.
    const bool may_claim =
        !queued() || !look(in_use, committed, available) || committed->fits(request.reserved, *available);
    Claim claim;
    for (Step step = Step::busy; step == Step::busy;) {
        {
            const Locked locked(*this, deadline, why);
            if (!locked) return Joined::unavailable;
            step = begin(request, self, may_claim, membership, &claim, why);
        }
        if (step == Step::joined) return Joined::yes;
        if (step == Step::refused) return Joined::refused;
        if (step == Step::lost) return Joined::lost;
        if (step == Step::failed) return Joined::unavailable;
        if (step == Step::busy && !deadline.pause())
            return say(why, "another process of the same job is being admitted"), Joined::unavailable;
    }

    const std::uint64_t ticket = claim.account->ticket;
    Deadline with_others(kPatienceWithOthers);
    for (;;) {
        *committed = {};
        committed->queue.asks(ticket);
        bool undecided = false;
        const Claims claims = with_others.passed() ? Claims::granted : Claims::open;
        // Waiting for the lock may have used the deadline up, as when hundreds of programs start at once.
        if (!add_foreign(Deadline(kPatienceToRead), claims, committed, &undecided, why)) {
            withdraw(claim);
            return Joined::unavailable;
        }
        {
            const Locked locked(*this, deadline, why);
            if (!locked) break;
            if (open_.file != claim.file) return say(why, "the ledger was removed"), Joined::unavailable;
            take_back_dead_locked();
            remove_leftovers();
            add_own(claim.account, committed, &undecided);
            if (!undecided || deadline.passed()) {
                *available = room(in_use, committed);
                if (committed->fits(request.reserved, *available)) {
                    note_granted(open_.file->header, ticket);
                    drop_ticket();
                    waiting_ = {};
                    return enter(claim.account, claim.place, membership), Joined::yes;
                }
                drop_claim(claim);
                claim.account->reserved.store(0);
                claim.account->state.store(claim.known ? AccountState::open : AccountState::free);
                return Joined::refused;
            }
        }
        if (!with_others.pause()) deadline.pause();
    }
    withdraw(claim);
    return Joined::unavailable;
}

}  // namespace cuslice::ledger
