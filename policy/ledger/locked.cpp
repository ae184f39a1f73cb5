// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/locked.h"

#include <errno.h>

#include "policy/ledger/lost.h"

namespace cuslice::ledger {

namespace {

// A file that was there when its lock was asked for may be gone when it is had.
constexpr unsigned kTries = 3;

}  // namespace

Locked::Locked(Roster& roster, const Deadline& deadline, LedgerError* why, Removed removed)
    : roster_(roster), guard_(roster.file.mutex()), saved_errno_(errno) {
    locked_ = lock(deadline, why, removed);
}

Locked::~Locked() {
    if (locked_)
        unlock_header(roster_.file.contents().header, roster_.file.folder().locker());
    errno = saved_errno_;
}

bool Locked::find_file(const Deadline& deadline, bool rests, LedgerError* why) {
    bool lost = false;
    if (!roster_.file.find(&lost, why))
        return false;
    return !lost || put_back(roster_, deadline, rests, why);
}

bool Locked::lock(const Deadline& deadline, LedgerError* why, Removed removed) {
    if (!roster_.file.there() || !roster_.keep_presence(why))
        return false;
    const bool rests = roster_.file.rests();
    const auto rest = [&] {
        roster_.file.mutex().is_held();
        if (!rests && means_held(errno))
            roster_.file.rest();
    };
    bool stays = false;  // in the removed file
    for (unsigned tries = 0;; tries++) {
        errno = 0;
        if (!find_file(rests ? Deadline(kBrief) : deadline, rests, why)) {
            const int error = errno;
            stays = removed == Removed::will_do && !means_held(error) && roster_.file.state() == State::gone;
            if (!stays) {
                errno = error;
                rest();
                return false;
            }
        }
        if (!lock_header_until(roster_.file.contents().header, roster_.file.folder().locker(),
                               rests ? Deadline(0) : deadline)) {
            rest();
            name_locker(roster_.file.contents().header, why);
            return false;
        }
        // The maker of a file put in its place meanwhile does not see what is done in this one from here on.
        if (stays || tries == kTries || roster_.file.state() != State::gone)
            break;
        unlock_header(roster_.file.contents().header, roster_.file.folder().locker());
    }
    if (roster_.file.contents().header.unfinished && !stays)
        roster_.file.finish();
    roster_.places().remember_terms(roster_.file);
    return true;
}

}  // namespace cuslice::ledger
