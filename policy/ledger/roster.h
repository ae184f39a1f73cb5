// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/ledger_file.h"
#include "policy/ledger/own_places.h"
#include "policy/ledger/tickets.h"

namespace cuslice::ledger {

/// The accounts of this user's file, their members and tickets: who lives, and this process's own places among them.
/// All of it under the file's mutex, and what is changed in the file under its header's lock, too (Locked).
class Roster {
  public:
    Roster() = default;
    Roster(const Roster&) = delete;
    Roster& operator=(const Roster&) = delete;

    // Public, as clang knows the mutex by the way that leads to it.
    LedgerFile file;
    LeftCopy left_copy;

    /// For a process that goes on without the ledger.
    void close() CUSLICE_REQUIRES(file.mutex());
    /// In a forked child: neither places nor locks are the child's.
    void forget() CUSLICE_REQUIRES(file.mutex());

    /// Makes sure that others see that this process lives, also by its places. False: they can't.
    bool keep_presence(LedgerError* why) CUSLICE_REQUIRES(file.mutex());
    OwnPlaces& places() CUSLICE_REQUIRES(file.mutex()) { return places_; }
    /// This process's ticket, and the memory that it waits for.
    OwnTicket& ticket() CUSLICE_REQUIRES(file.mutex()) { return ticket_; }
    const OwnTicket& ticket() const CUSLICE_REQUIRES(file.mutex()) { return ticket_; }
    /// A ticket if it waits and has none, and a note in it that it still waits.
    void take_ticket() CUSLICE_REQUIRES(file.mutex());

    /// Takes back what dead members held. True if there were any.
    bool take_back_dead() CUSLICE_REQUIRES(file.mutex());
    /// The same of some, for whoever joins the account (null: a new one).
    void take_back_some_dead(const Account* account) CUSLICE_REQUIRES(file.mutex());

    Account* find(AccountKind kind, const char* name) const CUSLICE_REQUIRES(file.mutex()) {
        return find_account(file.contents(), kind, name);
    }
    uint32_t index_of(const Account* account) const CUSLICE_REQUIRES(file.mutex()) {
        return ledger::index_of(file.contents(), account);
    }
    /// False for null.
    bool has_members(const Account* account) const CUSLICE_REQUIRES(file.mutex()) {
        return account && ledger::has_members(file.contents(), index_of(account));
    }
    // An account that nobody is in; null: living processes have all of them.
    Account* make_account(AccountKind kind) CUSLICE_REQUIRES(file.mutex());

    /// Moves this process's places from the old file to the one that has taken its place, whose lock it has. False:
    /// some stay where they were, as there is no room in the new file.
    bool move_places(const OpenFile& old) CUSLICE_REQUIRES(file.mutex());

  private:
    bool is_dead(const Member& member, uint32_t number) CUSLICE_REQUIRES(file.mutex());
    bool take_back_if_dead(uint32_t number) CUSLICE_REQUIRES(file.mutex());
    void take_back_tickets() CUSLICE_REQUIRES(file.mutex());
    void tidy_accounts() CUSLICE_REQUIRES(file.mutex());

    OwnPlaces places_ CUSLICE_GUARDED_BY(file.mutex());
    OwnTicket ticket_ CUSLICE_GUARDED_BY(file.mutex());
};

}  // namespace cuslice::ledger
