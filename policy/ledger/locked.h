// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/mutex.h"
#include "policy/ledger/roster.h"

namespace cuslice::ledger {

/// The lock of this user's file, for as long as it lives: no other thread and no other process moves accounts or
/// members. A file that is lost is put back first.
class CUSLICE_SCOPED_CAPABILITY Locked {
  public:
    // Where a file was removed and no other can be made in its place (no room, something else of that name):
    // whether the removed one will do, in which the members meet until then. It does not for those who join.
    enum class Removed : bool { is_no_use, will_do };
    // For a lock that is held while accounts change hands, which takes microseconds; its owner may have been stopped.
    static constexpr unsigned kPatience = 500;  // milliseconds
    // For news that can wait, and for a file that is lost while its lock isn't waited for: it is put back only if that
    // takes no longer than this.
    static constexpr unsigned kBrief = 20;  // milliseconds

    // `*why` says why it can't be had, and who has it.
    Locked(Roster& roster, const Deadline& deadline, LedgerError* why = nullptr, Removed removed = Removed::is_no_use)
        CUSLICE_ACQUIRE(roster.file.mutex());
    ~Locked() CUSLICE_RELEASE();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    explicit operator bool() const { return locked_; }

  private:
    bool lock(const Deadline& deadline, LedgerError* why, Removed removed) CUSLICE_REQUIRES(roster_.file.mutex());
    // One try. `*stays`: this process stays in the file that was removed. False: errno says why.
    bool take(const Deadline& deadline, bool rests, Removed removed, bool* stays, LedgerError* why)
        CUSLICE_REQUIRES(roster_.file.mutex());
    bool find_file(const Deadline& deadline, bool rests, Removed removed, bool* stays, LedgerError* why)
        CUSLICE_REQUIRES(roster_.file.mutex());
    void unlock() CUSLICE_REQUIRES(roster_.file.mutex());

    Roster& roster_;
    DisablingLockGuard guard_;
    int saved_errno_;
    bool locked_ = false;
};

}  // namespace cuslice::ledger
