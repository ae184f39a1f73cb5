// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/roster.h"

#include <unistd.h>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/queue.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

// ---- this process ---------------------------------------------------------------------------------------------------

void Roster::close() {
    if (file.there())
        ticket_.drop(file.contents());
    ticket_ = {};
    file.close(!places_.any());
    left_copy.drop();
    places_.forget();
}

void Roster::forget() {
    places_.forget();
    ticket_ = {};
    file.forget();
}

bool Roster::keep_presence(LedgerError* why) {
    FolderPresence& folder = file.folder();
    const uint64_t before = folder.presence().id();
    if (!file.keep_presence(why))
        return false;
    if (folder.keep_launchers())
        places_.show_launchers(file);
    if (!before || before == folder.presence().id())
        return true;
    places_.show_presence(file, before);
    ticket_.show_presence(file.contents(), folder.presence());
    return true;
}

void Roster::take_ticket() { ticket_.take(file.contents(), file.folder().presence()); }

// ---- who lives ------------------------------------------------------------------------------------------------------

// An exec leaves the process as it was for /proc, and nothing of what the program before it held. This process is not
// asked about itself: see life_of().
bool Roster::is_dead(const Member& member, uint32_t number) {
    if (places_.has(number))
        return false;
    if (file.folder().is_own(member.presence.load()))
        return false;
    const bool self = is_this_process(member);
    if (self && !is_launchers(member.role) && member.image != image_number())
        return true;
    if (self && member.lock == LockKind::process)
        return false;
    return !lives(member, file.folder().where(), Trusted::own);
}

// True if the member was dead.
bool Roster::take_back_if_dead(uint32_t number) {
    File& contents = file.contents();
    Member& member = contents.members[number];
    if (!is_live(member) || !is_dead(member, number))
        return false;
    if (member.account < kAccounts) {
        Account& account = contents.accounts[member.account];
        take_back(account.total, account.peak, contents.stripes, number * kStripes, kStripes);
    }
    member.state.store(MemberState::free);
    file.folder().remove_presence(contents, member.presence.load());
    return true;
}

bool Roster::take_back_dead() {
    const uint32_t count = file.members();
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any = take_back_if_dead(i) || any;
    tidy_accounts();
    return any;
}

// A process that joins has to know whether anybody is in the account, and that no earlier image of it is in any.
// Each look at a member is some calls of the kernel's; of the others some are looked at, so that the dead don't become
// many: at most one of kSome, where each join leaves one behind. Where memory is short all of them are.
void Roster::take_back_some_dead(const Account* account) {
    constexpr uint32_t kSome = 4, kFew = 16;
    const uint32_t count = file.members();
    if (count <= kFew) {
        take_back_dead();
        return;
    }
    const File& contents = file.contents();
    const int32_t self = getpid();
    bool lives = !account;
    for (uint32_t i = 0; i < count; i++) {
        const Member& member = contents.members[i];
        if (!is_live(member))
            continue;
        const bool asked = !lives && member.account == index_of(account);
        if ((asked || member.pid == self) && !take_back_if_dead(i) && asked)
            lives = true;
    }
    const auto first = static_cast<uint32_t>(now_realtime() / 1000 % count);
    for (uint32_t i = 0; i < kSome; i++)
        take_back_if_dead((first + i) % count);
    tidy_accounts();
}

// Frees the rest of accounts that nobody is in any more.
void Roster::tidy_accounts() {
    File& contents = file.contents();
    for (uint32_t i = 0; i < kAccounts; i++) {
        Account& account = contents.accounts[i];
        if (is_free(account) || ledger::has_members(contents, i))
            continue;
        account.reserved.store(0);
        // A group's limit is kept for whoever comes next.
        if (account.kind != AccountKind::group) {
            account.left = now_realtime();
            account.state.store(AccountState::free);
            continue;
        }
        account.state.store(AccountState::open);
        if (!account.left)
            account.left = now_realtime();
    }
    take_back_tickets();
}

void Roster::take_back_tickets() {
    File& contents = file.contents();
    FolderPresence& folder = file.folder();
    for (uint32_t i = 0; i < kTickets; i++) {
        Ticket& ticket = contents.tickets[i];
        if (ticket.state.load() == TicketState::free || ticket_.is_at(i))
            continue;
        if (waits(ticket, folder.where()))
            continue;
        ticket.state.store(TicketState::free);
        folder.remove_presence(contents, ticket.presence.load());
    }
}

// Where none is free, dead processes may have all of them: a join looks at a few only (take_back_some_dead).
Account* Roster::make_account(AccountKind kind) {
    Account* const account = new_account(file.contents(), kind);
    if (account || !take_back_dead())
        return account;
    return new_account(file.contents(), kind);
}

}  // namespace cuslice::ledger
