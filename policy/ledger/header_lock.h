// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/locks.h"
#include "policy/ledger/presence.h"

// The lock that is held while accounts, members and tickets change hands. It is a number in the header, so that only
// who has the file mapped for writing can take it or stand in its way.
namespace cuslice::ledger {

/// This process as a holder of the lock, and the folder with the presences of others.
struct Locker {
    UserFolder where;
    uint64_t id = 0;  // of its presence
    LockKind kind = LockKind::none;
    ProcessIdentity process;
};
/// The lock that is held while accounts, members and tickets change hands: the number of its holder's presence in the
/// header. Only who has the file mapped for writing can take it or stand in its way; one whose holder has ended is
/// taken over. Waits until the deadline, as its holder may have been stopped; as long as one holder comes after the
/// other, each is waited for. False: errno is EAGAIN.
bool lock_header_until(Header& header, const Locker& self, Deadline deadline);
void unlock_header(Header& header, const Locker& self);
/// The process that has the lock, in this pid namespace; 0 where that can't be told.
int32_t locker_of(const Header& header);
/// Says in `why`, which may be null, who has the lock and doesn't let go of it.
void name_locker(const Header& header, LedgerError* why);

}  // namespace cuslice::ledger
