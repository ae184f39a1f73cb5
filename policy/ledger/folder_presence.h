// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/folder.h"
#include "policy/ledger/header_lock.h"
#include "policy/ledger/layout.h"
#include "policy/ledger/presence.h"

namespace cuslice::ledger {

/// This process in the ledgers' folder, for one GPU: by its own presence, and by that of the launcher which became this
/// program. Not thread-safe: its owner has a lock.
class FolderPresence {
  public:
    /// The folder is there from now on. False: `why`, which may be null, says why it can't be opened.
    bool enter(const char* folder, LedgerError* why);
    const char* path() const { return path_; }
    const UserFolder& where() const { return where_; }
    /// The same, once it has been made sure of the descriptor, which the program may have closed.
    const UserFolder& look_again();

    /// Makes sure that others see that this process lives. False: they can't. `uuid`: the GPU's.
    bool keep_presence(const char* uuid, Presence::Lasts lasts, LedgerError* why);
    /// The same of the launcher's. True if it is there: its descriptor may be another one by now.
    bool keep_launchers();
    bool adopt_launcher(const Member& launcher);
    const Presence& presence() const { return presence_; }
    /// True for the number of either.
    bool is_own(uint64_t presence) const;
    /// Writes in a member of this process which presence it has.
    void show_presence(Member& member) const;
    /// Writes the descriptor, which the next program is to find, in a member if it is the launcher's.
    void show_launchers(Member& member) const;
    Locker locker() const { return {where_, presence_.id(), presence_.kind(), presence_.process()}; }

    /// Removes the file of a process that has ended, once nothing in the ledger names it.
    void remove_presence(const File& file, uint64_t id) const;
    void note_leftover(const char* uuid, unsigned user, uint64_t id);
    void remove_leftovers(const File& file);

    /// `remove`: nothing in the ledger names this process's presence, which goes too.
    void leave(bool remove);
    /// In a forked child, whose copy it is.
    void forget();

  private:
    char path_[kPathBytes] = {};
    FolderHandle handle_;
    UserFolder where_;
    Presence presence_;
    Presence launchers_;  // of the launcher that became this program
    // Presences of this user that a look at the folder has met: one whose process ended without a place in a ledger is
    // removed by nobody else. Some of them at a time.
    uint64_t leftovers_[4] = {};
    unsigned leftover_count_ = 0;
};

}  // namespace cuslice::ledger
