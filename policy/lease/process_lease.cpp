// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/process_lease.h"

#include <errno.h>

namespace cuslice::lease {

namespace {

Member member_of(const ledger::Presence& presence) {
    Member self{};
    self.presence = presence.id();
    self.lock = presence.kind();
    self.pid = presence.process().pid;
    self.pid_namespace = presence.process().pid_namespace;
    self.start_time = presence.process().start_time;
    return self;
}

}  // namespace

bool ProcessLease::open(const char* folder, const Terms& terms, LedgerError* why) {
    if (open_.file)
        return true;
    const int saved_errno = errno;
    const bool entered = ledger::make_folder(folder, why) && folder_.enter(folder, why) &&
                         folder_.keep_presence(kPresenceMark, ledger::Presence::Lasts::until_exec, why);
    const bool opened = entered && open_lease(folder_.where(), terms, &open_, why);
    if (opened) {
        surroundings_.look_in(folder_);
        lease_.attach(*open_.file, surroundings_, member_of(folder_.presence()));
    } else {
        folder_.leave(true);
    }
    errno = saved_errno;
    return opened;
}

bool ProcessLease::open_again(const Terms& terms, LedgerError* why) {
    const int saved_errno = errno;
    lease_.leave();
    OpenLease next;
    const bool opened = open_lease(folder_.look_again(), terms, &next, why);
    if (opened) {
        open_ = next;
        lease_.attach(*open_.file, surroundings_, member_of(folder_.presence()));
    }
    errno = saved_errno;
    return opened;
}

void ProcessLease::close() {
    const int saved_errno = errno;
    lease_.leave();
    close_lease(&open_);
    folder_.leave(true);
    errno = saved_errno;
}

void ProcessLease::forget() {
    lease_.forget();
    close_lease(&open_);
    folder_.forget();
}

}  // namespace cuslice::lease
