// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/file.h"
#include "policy/ledger/folder.h"
#include "policy/ledger/header_lock.h"

// A file that is gone, and those who are still in it: the file that takes its place begins with what they hold.
//
// Nobody can move another process to another file. So whoever makes the new one first retires the old one's accounts,
// so that nothing more can be had there, and then enters every process that lives, with what it holds, as a carried
// member. Such a process finds the new file when it is next refused something, and takes its entry over.
namespace cuslice::ledger {

// From now on, or no longer, nothing is granted in any of the file's accounts.
void set_retired(File& file, bool retired);
bool is_retired(const File& file);

// True if the lock of `one` is taken before that of `other`, by whoever takes both.
inline bool is_locked_before(const OpenFile& one, const OpenFile& other) { return one.identity < other.identity; }

// Members of a file that is gone: those that have their place there, or those that were carried there.
enum class Carried : uint8_t { places, entries };

// Enters the members of `gone`, which is retired, that live in `fresh`, which is locked or has no name yet. May be cut
// short and done again: who is entered as carried already has its figure brought up to date. Left out is who lives in
// another pid namespace and has lost its presence, as nobody here could tell when it ends. False where there is no room
// for one more.
bool carry_over(const OpenFile& gone, const OpenFile& fresh, Carried which, const UserFolder& where);

// True if the member is the same place of the same process as the other, which may be carried.
bool is_same_place(const Member& member, const Member& other);

// The files that lay under a name before, and that processes of this user still have open: as far as /proc shows them.
// Each is locked as long as this lives, unless its lock's owner is stopped: nobody leaves it for another one meanwhile.
class Removed {
  public:
    // `made`: the file that has the name `path`, or is about to get it. `own`: one of them that this process has
    // mapped; may be null.
    Removed(int made, const char* path, const char* uuid, const OpenFile* own, const Locker& self);
    ~Removed();
    Removed(const Removed&) = delete;
    Removed& operator=(const Removed&) = delete;

    // Retires them, and carries over what their members hold. False, and they are as before, if there is no room.
    bool carry_to(const OpenFile& fresh);
    // The same again, once the file has the name and is locked: for whoever went meanwhile to another one that had it.
    // A file whose maker is killed before that stays unfinished, and whoever has its lock next does all of it again.
    void carry_rest_to(const OpenFile& fresh);
    // The new file did not get the name: what was not retired before is not retired.
    void restore();

  private:
    static constexpr unsigned kMax = 8;
    void add(const OpenFile& file, bool own);
    void lock();
    void unlock();
    void look_around();
    void look_at(int descriptors, const char* number);

    struct One {
        OpenFile open;
        bool locked = false;
        bool own = false;      // not to be closed
        bool retired = false;  // before
    };
    One files_[kMax];
    unsigned count_ = 0;
    const char* const uuid_;
    const Locker& self_;
    char text_[kPathBytes];  // as /proc has their names, up to what differs between them
    bool looks_;
    FileIdentity made_;  // the new file
};

}  // namespace cuslice::ledger
