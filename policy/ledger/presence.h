// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/ledger/folder.h"
#include "policy/ledger/layout.h"
#include "policy/ledger/process_identity.h"

// A process shows that it lives by a file of its own in the ledgers' folder, which it keeps locked for writing.
//
// The file is made for its user alone, locked, and only then made readable for others. So another user can ask the
// kernel for the lock, and can neither take it (that needs the file open for writing) nor stand in its way (a lock for
// reading is refused while it is held). Its name is random: nobody can have it first. The kernel lets go of the lock
// whatever the process dies of; the empty file is removed by whoever takes back what the process held.
namespace cuslice::ledger {

/// How it looks from outside.
enum class Life : uint8_t {
    lives,
    ended,    // nobody has the file locked
    missing,  // there is no such file of that user's
    unknown,  // the kernel or a sandbox doesn't say
};

/// Asks the kernel about the process with this number. Opens a file and closes it: a process must not ask this about
/// itself, for it would give up a lock of the process. Thread-safe.
Life life_of(const UserFolder& where, uint64_t id);

/// The file of this process, or of the launcher that it was before an exec. Not thread-safe: its owner has a lock.
class Presence {
  public:
    enum class Lasts : bool { until_exec, over_exec };

    /// Makes the file, or makes sure that it is there and locked. One that somebody removed is made anew, under another
    /// number. False: there can be none, and `why`, which may be null, says why not. `uuid`: the GPU whose ledger it
    /// serves.
    bool keep(const UserFolder& where, const char* uuid, Lasts lasts, LedgerError* why);
    /// Takes over the file of the launcher that became this program, by the descriptor that it left if that is still
    /// open; again and again, as the program may close it, and the lock goes with it. False: it can't be had, and stays
    /// as it is.
    bool adopt(const UserFolder& where, uint64_t id, int descriptor);
    /// Lets go of it. `remove`: nothing in a ledger names it any more, and the file goes too.
    void give_up(const UserFolder& where, bool remove);
    /// In a forked child, which has neither mapping nor lock.
    void forget();

    uint64_t id() const { return id_; }  // 0: there is none
    LockKind kind() const { return kind_; }
    /// The descriptor that an exec keeps; -1: none.
    int descriptor() const { return descriptor_; }
    const ProcessIdentity& process() const { return process_; }

  private:
    bool is_there(const UserFolder& where) const;
    bool lock_again(const UserFolder& where);
    bool has_descriptor() const;
    bool make(const UserFolder& where, const char* uuid, Lasts lasts, LedgerError* why);
    LockKind lock_new(int* file, Lasts lasts);
    void drop_anchor();
    void take(uint64_t id, LockKind kind, Lasts lasts, const FileIdentity& identity);

    uint64_t id_ = 0;
    LockKind kind_ = LockKind::none;
    void* anchor_ = nullptr;  // the mapping that keeps a lock of an open file
    int descriptor_ = -1;     // for a lock of the process
    Lasts lasts_ = Lasts::until_exec;
    FileIdentity identity_;
    ProcessIdentity process_;
};

/// Removes the file of a process that has ended. False: it lives, or can't be told to have ended.
bool remove_ended(const UserFolder& where, uint64_t id);

/// "1000-0123456789abcdef.alive"; the reverse, for names in a folder.
bool parse_presence_name(const char* name, unsigned* user, uint64_t* id);
/// True if a number may be of this GPU's ledger: two GPUs can have the same mark.
bool is_of_gpu(uint64_t id, const char* uuid);

}  // namespace cuslice::ledger
