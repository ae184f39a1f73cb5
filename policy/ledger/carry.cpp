// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/carry.h"

#include <string.h>

#include <algorithm>

#include "policy/ledger/accounts.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/presence.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/tickets.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

bool is_known(const Account& account) {
    return account.state.load() == AccountState::open && account.kind <= AccountKind::rule &&
           strnlen(account.name, sizeof account.name) < sizeof account.name;
}

// True for a process that lives and has been granted something.
bool is_to_be_carried(const OpenFile& gone, uint32_t number, Carried which, const UserFolder& where) {
    const Member& member = gone.file->members[number];
    if (!is_live(member) || member.account >= kAccounts || !is_known(gone.file->accounts[member.account]))
        return false;
    if (member.role > MemberRole::carried_launcher || is_carried(member.role) != (which == Carried::entries))
        return false;
    // By these it finds its entry again.
    if (!member.start_time || !member.pid_namespace)
        return false;
    if (life_of(where, member.presence.load()) == Life::lives)
        return true;
    return lives(member, where, Trusted::own) && is_running(process_of(member));
}

int64_t held_in(const File& file, uint32_t number) {
    const Stamped& total = file.accounts[file.members[number].account].total;
    int64_t sum = 0;
    for (uint32_t stripe = number * kStripes; stripe < (number + 1) * kStripes; stripe++)
        sum = plus(sum, held_now(total, file.stripes[stripe], stripe));
    return std::max<int64_t>(sum, 0);
}

// The account of the same name, with the terms of the one that is gone if nobody is in it yet.
Account* same_account(File& file, const Account& gone) {
    Account* account = find_account(file, gone.kind, gone.name);
    const bool in_use = account && has_members(file, index_of(file, account));
    if (!account)
        account = new_account(file, gone.kind);
    if (!account)
        return nullptr;
    if (!in_use) {
        Terms terms{gone.kind, gone.inner != 0, {}, gone.limit.load(), gone.reserved.load()};
        static_assert(sizeof terms.name == sizeof gone.name);
        memcpy(terms.name, gone.name, sizeof terms.name);
        set_terms(account, terms);
        account->ticket = gone.ticket;
        account->state.store(AccountState::open);
    } else if (gone.kind == AccountKind::group) {
        bring_limit(account, gone.limit.load());
    }
    note_peak(account->peak, peak_of(gone.total, gone.peak));
    return account;
}

// A free place; kMembers: there is none.
uint32_t free_place(const OpenFile& fresh) {
    uint32_t number = 0;
    while (number < kMembers && fresh.file->members[number].state.load() != MemberState::free)
        number++;
    return make_room(fresh, "", number + 1) ? number : kMembers;
}

// First the member, then what it holds: whoever does this again finds the one and completes the other.
uint32_t enter(const OpenFile& fresh, const Member& gone, uint32_t account) {
    const uint32_t number = free_place(fresh);
    if (number == kMembers)
        return number;
    Member& member = fresh.file->members[number];
    member.account = account;
    member.pid = gone.pid;
    member.caches.store(0);  // it looks at nothing that is asked of it here
    member.pid_namespace = gone.pid_namespace;
    member.start_time = gone.start_time;
    member.since = gone.since;
    member.image = gone.image;
    member.presence.store(gone.presence.load());
    member.lock = gone.lock;
    member.descriptor = gone.descriptor;
    member.role = is_launchers(gone.role) ? MemberRole::carried_launcher : MemberRole::carried;
    memcpy(member.command, gone.command, sizeof member.command);
    fresh.file->header.members = std::max(fresh.file->header.members, number + 1);
    member.state.store(MemberState::live);
    return number;
}

bool carry_member(const OpenFile& gone, uint32_t number, const OpenFile& fresh, Carried which) {
    File& file = *fresh.file;
    const Member& member = gone.file->members[number];
    Account* const account = same_account(file, gone.file->accounts[member.account]);
    if (!account)
        return false;
    const uint32_t index = index_of(file, account);
    const auto is_it = [&](const Member& other) { return is_same_place(other, member); };
    const Member* const known = find_member(members_of(file), index, is_it);
    // One that has moved says itself what it holds, and its place more than an entry.
    if (known && (!is_carried(known->role) || which == Carried::entries))
        return true;
    const uint32_t here = known ? index_of(file, known) : enter(fresh, member, index);
    if (here == kMembers)
        return false;
    Stamped& total = account->total;
    const uint32_t stripe = here * kStripes;
    int64_t entered = 0;
    for (uint32_t i = stripe; i < stripe + kStripes; i++) {
        resolve(total, file.stripes, i);
        entered = plus(entered, file.stripes[i].held.load());
        const uint64_t used = gone.file->stripes[number * kStripes + i - stripe].last_use.load();
        file.stripes[i].last_use.store(used);
    }
    const int64_t more = plus(held_in(*gone.file, number), minus(entered));
    if (more)
        change(total, &account->peak, file.stripes, stripe, more, kNoLimit);
    return true;
}

}  // namespace

bool is_same_place(const Member& member, const Member& other) {
    return is_same_process(member, other) && member.start_time != 0 && member.image == other.image &&
           is_launchers(member.role) == is_launchers(other.role);
}

void set_retired(File& file, bool retired) {
    for (Account& account : file.accounts)
        if (!is_free(account))
            set_retired(account.total, retired);
}

bool is_retired(const File& file) {
    return std::ranges::any_of(file.accounts,
                               [](const Account& account) { return !is_free(account) && is_retired(account.total); });
}

bool carry_over(const OpenFile& gone, const OpenFile& fresh, Carried which, const UserFolder& where) {
    merge_granted(fresh.file->header, gone.file->header);
    const uint32_t count = std::min({gone.file->header.members, gone.file->header.room, kMembers});
    for (uint32_t i = 0; i < count; i++)
        if (is_to_be_carried(gone, i, which, where) && !carry_member(gone, i, fresh, which))
            return false;
    return true;
}

}  // namespace cuslice::ledger
