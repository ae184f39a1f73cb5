// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/folder_presence.h"

#include <stdio.h>
#include <unistd.h>

#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/users.h"

namespace cuslice::ledger {

bool FolderPresence::enter(const char* folder, LedgerError* why) {
    snprintf(path_, sizeof path_, "%s", folder);
    if (!handle_.open(path_))
        return set_failure(why, "can't open the folder", path_), false;
    where_ = {handle_.descriptor(), this_user(path_), geteuid(), path_};
    return true;
}

const UserFolder& FolderPresence::look_again() {
    where_.descriptor = handle_.descriptor();
    return where_;
}

bool FolderPresence::keep_presence(const char* uuid, Presence::Lasts lasts, LedgerError* why) {
    return presence_.keep(look_again(), uuid, lasts, why);
}

bool FolderPresence::keep_launchers() {
    return launchers_.id() && launchers_.adopt(where_, launchers_.id(), launchers_.descriptor());
}

bool FolderPresence::adopt_launcher(const Member& launcher) {
    return launchers_.adopt(where_, launcher.presence.load(), launcher.descriptor);
}

bool FolderPresence::is_own(uint64_t presence) const {
    return presence && (presence == presence_.id() || presence == launchers_.id());
}

void FolderPresence::show_presence(Member& member) const {
    member.presence.store(presence_.id());
    member.lock = presence_.kind();
    member.descriptor = presence_.descriptor();
}

void FolderPresence::show_launchers(Member& member) const {
    if (member.presence.load() == launchers_.id())
        member.descriptor = launchers_.descriptor();
}

void FolderPresence::remove_presence(const File& file, uint64_t id) const {
    if (!id || is_own(id))
        return;
    for (const Member& member : members_of(file))
        if (is_live(member) && member.presence.load() == id)
            return;
    for (const Ticket& ticket : file.tickets)
        if (ticket.state.load() == TicketState::waiting && ticket.presence.load() == id)
            return;
    remove_ended(where_, id);
}

void FolderPresence::note_leftover(const char* uuid, unsigned user, uint64_t id) {
    constexpr uint64_t kOneOf = 16;
    const bool chosen = (id >> 16 ^ now_monotonic_seconds()) % kOneOf == 0;
    if (user != where_.user || !is_of_gpu(id, uuid) || !chosen || leftover_count_ == std::size(leftovers_))
        return;
    leftovers_[leftover_count_++] = id;
}

void FolderPresence::remove_leftovers(const File& file) {
    while (leftover_count_)
        remove_presence(file, leftovers_[--leftover_count_]);
}

// The places that it has are taken back by others, who find that it has ended.
void FolderPresence::leave(bool remove) {
    presence_.give_up(where_, remove);
    handle_.close();
    where_ = {};
}

void FolderPresence::forget() {
    presence_.forget();
    launchers_.forget();
    handle_.forget();
}

}  // namespace cuslice::ledger
