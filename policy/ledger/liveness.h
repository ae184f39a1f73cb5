// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/folder.h"
#include "policy/ledger/layout.h"
#include "policy/ledger/presence.h"

// Tells if the process of a member or of a ticket still lives.
namespace cuslice::ledger {

/// The owner of the ledger that says so.
enum class Trusted : bool { others, own };

/// True if a process lives whose presence looks so. The lock on that says so. A lock of the process can be lost while
/// the process lives (a program that closes every descriptor), and somebody may have removed the file: then /proc is
/// asked, which knows the processes of the same pid namespace. `lock`: the one that its presence has. `trusted`: nobody
/// but this user says it; then, who can't be told to have ended lives.
bool lives(Life presence, LockKind lock, const ProcessIdentity& process, Trusted trusted);

// True if the member is of this process, as it is or as it was before an exec.
bool is_this_process(const Member& member);

// True of two places of one process, as far as can be told.
inline bool is_same_process(const Member& a, const Member& b) {
    return a.pid == b.pid && a.pid_namespace == b.pid_namespace && may_be_same_start(a.start_time, b.start_time);
}

// The launcher's place, of a process that has one of its own in the same account by now: nothing to be shown.
bool is_doubled(const File& file, const Member& member);

/// True if the process of a member lives, in a file of the user's of `where`. `trusted`: the file is this user's own.
bool lives(const Member& member, const UserFolder& where, Trusted trusted);
/// The same for a ticket. One that can't be told to live has ended: a process that waits writes its ticket anew when it
/// looks.
bool lives(const Ticket& ticket, const UserFolder& where);

}  // namespace cuslice::ledger
