// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/ledger/ledger_file.h"
#include "policy/ledger/membership.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::ledger {

// Description of this process for its place, asked of the kernel before anybody has to wait for it.
struct Joiner {
    explicit Joiner(const char* command);  // null: the process's own name
    ProcessIdentity process;
    char command[sizeof Member::command];
};

// One of this process's members.
struct OwnPlace {
    uint32_t number = 0;
    Membership* membership = nullptr;  // null: the launcher's, which holds nothing
};

/// This process's places among the members of a file. Not thread-safe: its owner has the file's mutex, and the header's
/// lock (Locked) for what is changed in the file.
class OwnPlaces {
  public:
    static constexpr unsigned kMost = 8;

    bool any() const { return count_ != 0; }
    bool has(uint32_t number) const;
    bool has_any_in(LedgerFile& file, uint32_t account) const CUSLICE_REQUIRES(file.mutex());
    // The place in the account that nothing is held in; null: there is none.
    OwnPlace* empty_in(LedgerFile& file, uint32_t account) CUSLICE_REQUIRES(file.mutex());

    // A place in the account, not yet living; null: there is none to be had.
    OwnPlace* take(LedgerFile& file, uint32_t account, const Joiner& self, LedgerError* why)
        CUSLICE_REQUIRES(file.mutex());
    // The entry that whoever made this file wrote for a place of this process's, as its place; null: there is none.
    OwnPlace* take_over_carried(LedgerFile& file, uint32_t account, const Joiner& self) CUSLICE_REQUIRES(file.mutex());
    // Takes back such entries that are left in the account.
    void drop_carried(LedgerFile& file, uint32_t account, const Joiner& self) CUSLICE_REQUIRES(file.mutex());
    // Adopts the place of the launcher that became this program, and tells the member whose it is.
    void adopt_launcher(LedgerFile& file, uint32_t account, Member* member) CUSLICE_REQUIRES(file.mutex());
    void drop(LedgerFile& file, OwnPlace* place) CUSLICE_REQUIRES(file.mutex());
    // By its member's number; kMembers: none.
    void drop(LedgerFile& file, uint32_t number) CUSLICE_REQUIRES(file.mutex());
    // Copies them, and forgets them. Their number.
    unsigned take_out(OwnPlace (&places)[kMost]);
    // In a forked child, and when the ledger is closed: nothing changes in the file.
    void forget() { count_ = 0; }

    // Shows this process's presence in those that have the one of before.
    void show_presence(LedgerFile& file, uint64_t before) CUSLICE_REQUIRES(file.mutex());
    // Shows the descriptor of the launcher's.
    void show_launchers(LedgerFile& file) CUSLICE_REQUIRES(file.mutex());
    // Takes note of the terms of the accounts that this process is in, in case that the file is lost.
    void remember_terms(LedgerFile& file) CUSLICE_REQUIRES(file.mutex());

  private:
    OwnPlace places_[kMost] = {};
    unsigned count_ = 0;
};

}  // namespace cuslice::ledger
