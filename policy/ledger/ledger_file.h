// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/ledger/file.h"
#include "policy/ledger/folder_presence.h"

namespace cuslice::ledger {

/// This user's file of one GPU, as this process has it open, with the mutex over all that this process knows of the
/// ledger. Thread-safe; the functions that need the mutex say so.
class LedgerFile {
  public:
    Mutex& mutex() const CUSLICE_RETURNS(mutex_) { return mutex_; }

    /// As Ledger has it.
    bool open(const char* folder, const char* uuid, uint64_t capacity, bool keep_over_exec, LedgerError* why);
    bool open_existing(const char* folder, const char* uuid, LedgerError* why);
    bool opened() const;
    uint64_t capacity() const { return capacity_; }  // bytes
    const char* uuid() const { return uuid_; }
    /// `remove`: nothing in it names this process, whose presence goes too.
    void close(bool remove) CUSLICE_REQUIRES(mutex_);
    void forget() CUSLICE_REQUIRES(mutex_);

    bool there() const CUSLICE_REQUIRES(mutex_) { return open_.there(); }
    const OpenFile& now() const CUSLICE_REQUIRES(mutex_) { return open_; }
    File& contents() const CUSLICE_REQUIRES(mutex_) { return *open_.file; }
    uint32_t members() const CUSLICE_REQUIRES(mutex_);
    State state() const CUSLICE_REQUIRES(mutex_) { return state_of(open_, uuid_); }
    /// The text stays where it is, and is another one once the file is.
    const char* path() const CUSLICE_REQUIRES(mutex_) { return path_; }
    bool keeps_over_exec() const CUSLICE_REQUIRES(mutex_) { return keep_over_exec_; }

    FolderPresence& folder() CUSLICE_REQUIRES(mutex_) { return folder_; }
    bool keep_presence(LedgerError* why) CUSLICE_REQUIRES(mutex_);
    /// The folder and its user, without a lock for what follows.
    UserFolder look_at_folder();
    /// Notes an entry of the folder if it is a presence that somebody of this user's may have left.
    void note_leftover(const char* name);

    /// Makes sure of the descriptor. False where it can't be told which file it is of: errno says why. `*lost`: the
    /// file was removed or overwritten.
    bool find(bool* lost, LedgerError* why) CUSLICE_REQUIRES(mutex_);
    /// Opens the file that has the name by now, or makes it. `removed`: this one is gone, not damaged. See open_own().
    bool open_successor(const Locker& self, bool removed, const Deadline& deadline, OpenFile* fresh,
                        char (&path)[kPathBytes], LedgerError* why) CUSLICE_REQUIRES(mutex_);
    /// Goes on with it.
    void replace(const OpenFile& fresh, const char (&path)[kPathBytes]) CUSLICE_REQUIRES(mutex_);
    /// Does the rest where the file's maker was killed before it had seen everybody.
    void finish() CUSLICE_REQUIRES(mutex_);

    /// A lock that could not be had is not waited for again for some seconds.
    bool rests() const CUSLICE_REQUIRES(mutex_);
    void rest() CUSLICE_REQUIRES(mutex_);

  private:
    mutable Mutex mutex_{LockRank::ledger};
    OpenFile open_ CUSLICE_GUARDED_BY(mutex_);
    uint64_t capacity_ = 0;  // bytes
    bool keep_over_exec_ CUSLICE_GUARDED_BY(mutex_) = false;
    char path_[kPathBytes] = {}, uuid_[64] = {};
    FolderPresence folder_ CUSLICE_GUARDED_BY(mutex_);
    // CLOCK_MONOTONIC, seconds: until then the lock is not waited for again.
    uint64_t not_before_ CUSLICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace cuslice::ledger
