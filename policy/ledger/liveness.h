#pragma once
#include "policy/ledger/layout.h"

// Whether the process that a member or a ticket is of still lives.
namespace cuslice::ledger {

// Whether this process is, or was before an exec, the one that the member is of.
bool is_this_process(const Member& member);

// The launcher's place, of a process that has one of its own in the same account by now: nothing to be shown.
bool is_doubled(const File& file, const Member& member);

// Whether member `number`, of the file behind `file`, still lives. The lock on its byte says so. A lock of the process
// can be lost while the process lives (a program that closes every descriptor), so where it is free /proc is asked,
// which knows the processes of the same pid namespace. Ours among them. Of a carried member /proc alone is asked, as
// its lock is on another file.
bool lives(const Member& member, std::uint32_t number, int file);
// The same for a ticket.
bool lives(const Ticket& ticket, std::uint32_t index, int file);

}  // namespace cuslice::ledger
