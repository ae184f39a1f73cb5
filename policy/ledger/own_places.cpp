// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/own_places.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

MemberRole own_role(const LedgerFile& file) CUSLICE_REQUIRES(file.mutex()) {
    return file.keeps_over_exec() ? MemberRole::launcher : MemberRole::user;
}

// The number of an entry that was carried over for this process; kMembers: there is none.
uint32_t find_carried(LedgerFile& file, uint32_t account, const Joiner& self) CUSLICE_REQUIRES(file.mutex()) {
    Member own{};
    own.pid = self.process.pid;
    own.pid_namespace = self.process.pid_namespace;
    own.start_time = self.process.start_time;
    own.image = image_number();
    own.role = own_role(file);
    if (!own.pid_namespace)
        return kMembers;
    const File& contents = file.contents();
    const auto is_own = [&](const Member& member) { return is_carried(member.role) && is_same_place(member, own); };
    const Member* const found = find_member(members_of(contents), account, is_own);
    return found ? index_of(contents, found) : kMembers;
}

}  // namespace

Joiner::Joiner(const char* text) : process(this_process()) {
    if (text)
        snprintf(command, sizeof command, "%s", text);
    else
        command_of_this_process(command, sizeof command);
}

bool OwnPlaces::has(uint32_t number) const {
    return std::any_of(places_, places_ + count_, [&](const OwnPlace& place) { return place.number == number; });
}

void OwnPlaces::show_launchers(LedgerFile& file) {
    for (unsigned i = 0; i < count_; i++)
        file.folder().show_launchers(file.contents().members[places_[i].number]);
}

void OwnPlaces::remember_terms(LedgerFile& file) {
    for (unsigned i = 0; i < count_; i++) {
        Membership* membership = places_[i].membership;
        if (!membership)
            continue;
        membership->remember();
        // A file that is there is nobody's to retire: whoever did thought it was gone.
        if (membership->retired() && file.state() == State::whole)
            set_retired(membership->account_->total, false);
    }
}

OwnPlace* OwnPlaces::take(LedgerFile& file, uint32_t account, const Joiner& self, LedgerError* why) {
    File& contents = file.contents();
    if (count_ == kMost)
        return set_text(why, "too many accounts for one process"), nullptr;
    uint32_t number = 0;
    while (number < kMembers && (contents.members[number].state.load() != MemberState::free || has(number)))
        number++;
    if (number == kMembers)
        return set_text(why, "there is no room for one more process"), nullptr;
    if (!make_room(file.now(), file.path(), number + 1))
        return set_text(why, "there is no room for the ledger to grow"), nullptr;
    OwnPlace& place = places_[count_++];
    place = {};
    place.number = number;

    Member& member = contents.members[number];
    member.account = account;
    member.caches.store(0);
    member.pid = self.process.pid;
    member.pid_namespace = self.process.pid_namespace;
    member.start_time = self.process.start_time;
    member.since = now_realtime();
    member.image = image_number();
    file.folder().show_presence(member);
    member.role = own_role(file);
    static_assert(sizeof member.command == sizeof self.command);
    memcpy(member.command, self.command, sizeof member.command);
    for (uint32_t stripe = 0; stripe < kStripes; stripe++)
        contents.stripes[number * kStripes + stripe].last_use.store(now_monotonic_seconds());
    contents.header.members = std::max(contents.header.members, number + 1);
    return &place;
}

OwnPlace* OwnPlaces::empty_in(LedgerFile& file, uint32_t account) {
    for (unsigned i = 0; i < count_; i++) {
        const Member& member = file.contents().members[places_[i].number];
        if (!places_[i].membership && member.account == account && !is_launchers(member.role))
            return &places_[i];
    }
    return nullptr;
}

bool OwnPlaces::has_any_in(LedgerFile& file, uint32_t account) const {
    for (unsigned i = 0; i < count_; i++)
        if (file.contents().members[places_[i].number].account == account)
            return true;
    return false;
}

void OwnPlaces::drop(LedgerFile& file, uint32_t number) {
    for (unsigned i = 0; i < count_; i++)
        if (places_[i].number == number)
            return drop(file, &places_[i]);
}

void OwnPlaces::drop(LedgerFile& file, OwnPlace* place) {
    file.contents().members[place->number].state.store(MemberState::free);
    *place = places_[--count_];
}

// The launcher that became this program keeps its place, and the reservation with it, for whatever the program becomes
// next. What the program holds is in a place of its own, which goes with the program. For people they are one.
void OwnPlaces::adopt_launcher(LedgerFile& file, uint32_t account, Member* member) {
    File& contents = file.contents();
    const auto is_its = [&](const Member& other) {
        return is_launchers(other.role) && !has(index_of(contents, &other)) && is_this_process(other);
    };
    const Member* const launcher = find_member(members_of(contents), account, is_its);
    if (!launcher)
        return;
    member->since = launcher->since;
    memcpy(member->command, launcher->command, sizeof member->command);
    // A carried one has no lock that an exec would keep, and needs none.
    if (is_carried(launcher->role) || count_ == kMost || !file.folder().adopt_launcher(*launcher))
        return;
    places_[count_] = {};
    places_[count_++].number = index_of(contents, launcher);
    show_launchers(file);
}

OwnPlace* OwnPlaces::take_over_carried(LedgerFile& file, uint32_t account, const Joiner& self) {
    if (count_ == kMost)
        return nullptr;
    const uint32_t number = find_carried(file, account, self);
    if (number == kMembers)
        return nullptr;
    File& contents = file.contents();
    OwnPlace& place = places_[count_++];
    place = {};
    place.number = number;
    // The maker of the file may have been killed over it.
    const uint32_t end = (number + 1) * kStripes;
    for (uint32_t stripe = number * kStripes; stripe < end; stripe++)
        resolve(contents.accounts[account].total, contents.stripes, stripe);
    file.folder().show_presence(contents.members[number]);
    contents.members[number].role = own_role(file);
    return &place;
}

void OwnPlaces::drop_carried(LedgerFile& file, uint32_t account, const Joiner& self) {
    File& contents = file.contents();
    for (uint32_t more; (more = find_carried(file, account, self)) != kMembers;) {
        Account& of = contents.accounts[account];
        take_back(of.total, of.peak, contents.stripes, more * kStripes, kStripes);
        contents.members[more].state.store(MemberState::free);
    }
}

unsigned OwnPlaces::take_out(OwnPlace (&places)[kMost]) {
    std::copy(places_, places_ + count_, places);
    return std::exchange(count_, 0u);
}

void OwnPlaces::show_presence(LedgerFile& file, uint64_t before) {
    for (unsigned i = 0; i < count_; i++) {
        Member& member = file.contents().members[places_[i].number];
        if (member.presence.load() == before)
            file.folder().show_presence(member);
    }
}

}  // namespace cuslice::ledger
