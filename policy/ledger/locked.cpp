// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/locked.h"

#include <errno.h>

#include "policy/ledger/lost.h"

namespace cuslice::ledger {

namespace {

// A file that was there when its lock was asked for may be gone when it is had.
constexpr unsigned kTries = 3;

Deadline at_most(unsigned milliseconds, bool rests, const Deadline& deadline) {
    return rests ? Deadline(milliseconds) : deadline;
}

}  // namespace

Locked::Locked(Roster& roster, const Deadline& deadline, LedgerError* why, Removed removed)
    : roster_(roster), guard_(roster.file.mutex()), saved_errno_(errno) {
    locked_ = lock(deadline, why, removed);
}

Locked::~Locked() {
    if (locked_)
        unlock();
    errno = saved_errno_;
}

bool Locked::find_file(const Deadline& deadline, bool rests, Removed removed, bool* stays, LedgerError* why) {
    errno = 0;
    if (keep_file(roster_, deadline, rests, why))
        return true;
    if (removed == Removed::is_no_use || means_held(errno))
        return false;
    const int error = errno;
    *stays = roster_.file.state() == State::gone;
    errno = error;
    return *stays;
}

bool Locked::take(const Deadline& deadline, bool rests, Removed removed, bool* stays, LedgerError* why) {
    if (!find_file(at_most(kBrief, rests, deadline), rests, removed, stays, why))
        return false;
    Header& header = roster_.file.contents().header;
    if (lock_header_until(header, roster_.file.folder().locker(), at_most(0, rests, deadline)))
        return true;
    name_locker(header, why);
    errno = EAGAIN;
    return false;
}

void Locked::unlock() { unlock_header(roster_.file.contents().header, roster_.file.folder().locker()); }

bool Locked::lock(const Deadline& deadline, LedgerError* why, Removed removed) {
    if (!roster_.file.there() || !roster_.keep_presence(why))
        return false;
    const bool rests = roster_.file.rests();
    bool stays = false;  // in the removed file
    for (unsigned tries = 0;; tries++) {
        if (!take(deadline, rests, removed, &stays, why)) {
            if (!rests && means_held(errno))
                roster_.file.rest();
            return false;
        }
        // The maker of a file put in its place meanwhile does not see what is done in this one from here on.
        if (stays || tries == kTries || roster_.file.state() != State::gone)
            break;
        unlock();
    }
    if (!stays)
        roster_.file.finish();
    roster_.places().remember_terms(roster_.file);
    return true;
}

}  // namespace cuslice::ledger
