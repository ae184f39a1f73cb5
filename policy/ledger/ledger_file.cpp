// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/ledger_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/own_file.h"

namespace cuslice::ledger {

namespace {

// To open a file, which others may be making at the same time.
constexpr unsigned kPatienceToOpen = 1000;  // milliseconds
// So long a lock that could not be had is not waited for again.
constexpr uint64_t kRest = 5;  // seconds

}  // namespace

bool LedgerFile::keep_presence(LedgerError* why) {
    const auto lasts = keep_over_exec_ ? Presence::Lasts::over_exec : Presence::Lasts::until_exec;
    return folder_.keep_presence(uuid_, lasts, why);
}

bool LedgerFile::open(const char* folder, const char* uuid, uint64_t capacity, bool keep_over_exec, LedgerError* why) {
    const DisablingLockGuard guard(mutex_);
    if (open_.there())
        return true;
    const int saved_errno = errno;
    keep_over_exec_ = keep_over_exec;
    bool done = make_folder(folder, why);
    if (done) {
        snprintf(uuid_, sizeof uuid_, "%s", uuid);
        done = folder_.enter(folder, why) && keep_presence(why);
    }
    if (done) {
        folder_.keep_launchers();
        done =
            open_own(folder_.locker(), uuid, capacity, keep_over_exec, Deadline(kPatienceToOpen), &open_, path_, why);
    }
    if (done)
        capacity_ = open_.file->header.capacity;
    else
        folder_.leave(true);
    errno = saved_errno;
    return done;
}

bool LedgerFile::open_existing(const char* folder, const char* uuid, LedgerError* why) {
    const DisablingLockGuard guard(mutex_);
    if (open_.there())
        return true;
    const int saved_errno = errno;
    snprintf(uuid_, sizeof uuid_, "%s", uuid);
    const bool done = folder_.enter(folder, why) && ledger::open_existing(folder_.where(), uuid, &open_, path_, why);
    if (done)
        capacity_ = open_.file->header.capacity;
    else
        folder_.leave(true);
    errno = saved_errno;
    return done;
}

bool LedgerFile::opened() const {
    const DisablingLockGuard guard(mutex_);
    return open_.there();
}

void LedgerFile::close(bool remove) {
    folder_.leave(remove);
    close_file(&open_);
}

void LedgerFile::forget() {
    folder_.forget();
    leave_to_parent(&open_);
}

uint32_t LedgerFile::members() const { return static_cast<uint32_t>(members_of(*open_.file).size()); }

UserFolder LedgerFile::look_at_folder() {
    const DisablingLockGuard guard(mutex_);
    return folder_.look_again();
}

void LedgerFile::note_leftover(const char* name) {
    unsigned user = 0;
    uint64_t id = 0;
    if (!parse_presence_name(name, &user, &id))
        return;
    const DisablingLockGuard guard(mutex_);
    folder_.note_leftover(uuid_, user, id);
}

bool LedgerFile::find(bool* lost, LedgerError* why) {
    State state = state_of(open_, uuid_);
    if (state == State::unknown) {
        if (!path_[0])
            return false;
        bool gone = false;
        if (!open_again(path_, &open_, &gone) && !gone) {
            set_failure(why, "can't open", path_);
            return false;
        }
        state = gone ? State::gone : state_of(open_, uuid_);
    }
    *lost = state == State::gone || state == State::damaged;
    return true;
}

bool LedgerFile::open_successor(const Locker& self, bool removed, const Deadline& deadline, OpenFile* fresh,
                                char (&path)[kPathBytes], LedgerError* why) {
    return open_own(self, uuid_, capacity_, keep_over_exec_, deadline, fresh, path, why, removed ? &open_ : nullptr);
}

void LedgerFile::replace(const OpenFile& fresh, const char (&path)[kPathBytes]) {
    open_ = fresh;
    snprintf(path_, sizeof path_, "%s", path);
}

void LedgerFile::finish() {
    if (!open_.file->header.unfinished)
        return;
    const Locker self = folder_.locker();
    Removed removed(open_.descriptor, path_, uuid_, nullptr, self);
    if (removed.carry_to(open_))
        open_.file->header.unfinished = 0;
}

bool LedgerFile::rests() const { return now_monotonic_seconds() < not_before_; }

void LedgerFile::rest() { not_before_ = now_monotonic_seconds() + kRest; }

}  // namespace cuslice::ledger
