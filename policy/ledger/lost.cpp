// A file that was removed or written over while this process uses it: the way to the one that takes its place.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/ledger.h"
#include "policy/ledger/own_file.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

// Makes sure of the descriptor and of the file. One that was removed or overwritten is put back by whoever has a place
// in it.
bool Ledger::find_file(const Deadline& deadline, bool rests, LedgerError* why) {
    State state = state_of(open_, uuid_);
    if (state == State::unknown) {
        if (!path_[0]) return false;
        bool gone = false;
        if (!open_again(path_, &open_, &gone) && !gone) {
            if (why) snprintf(why->text, sizeof why->text, "can't open %s: %s", path_, strerror(errno));
            return false;
        }
        state = gone ? State::gone : state_of(open_, uuid_);
    }
    return (state != State::gone && state != State::damaged) || put_back(deadline, rests, why);
}

bool Ledger::put_back(const Deadline& deadline, bool rests, LedgerError* why) {
    // Without a descriptor the name alone says that it is gone, as it does in a program that has changed its root: so
    // nothing is done to the others who are in it.
    const bool removed = state_of(open_, uuid_) == State::gone;
    OpenFile fresh;
    if (!open_own(folder_, uuid_, capacity_, keep_over_exec_, deadline, &fresh, why, removed ? &open_ : nullptr))
        return false;
    // Under the old file's lock, too: whoever makes yet another file sees this process in one of them. Its owner may
    // have been stopped, so it is waited for once.
    const OpenFile old = open_;
    const auto lock = [&](const OpenFile& file) {
        return lock_header_until(file.descriptor, file.file->header, rests ? Deadline(0) : deadline);
    };
    const bool old_first = is_locked_before(old, fresh);
    LockKind of_old = removed && old_first ? lock(old) : LockKind::none;
    LockKind kind = lock(fresh);
    const int error = kind == LockKind::none ? errno : EAGAIN;
    if (removed && !old_first && kind != LockKind::none) of_old = lock(old);
    const bool waits = rests && removed && of_old == LockKind::none;
    const bool done = kind != LockKind::none && !waits;
    if (done) {
        open_ = fresh;
        // Somebody may have made it who knew nothing of the old one.
        if (removed) {
            set_retired(*old.file, true);
            for (const Carried which : {Carried::places, Carried::entries}) carry_over(old, open_, which);
        }
        move_places(old);
    } else {
        name_locker(waits ? old : fresh, why);
    }
    if (kind != LockKind::none) unlock_header(fresh.descriptor, fresh.file->header, kind);
    if (of_old != LockKind::none) unlock_header(old.descriptor, old.file->header, of_old);
    if (!done) {
        close_file(&fresh);
        errno = error;
        return false;
    }
    // What was mapped stays so: threads may be about to read a figure there.
    OpenFile descriptor = old;
    leave_to_parent(&descriptor);
    return true;
}

// Whoever made the file was killed before it had seen everybody.
void Ledger::finish_file() {
    Removed removed(open_.descriptor, path_, uuid_, nullptr);
    if (removed.carry_to(open_)) open_.file->header.unfinished = 0;
}

// The entry that whoever made this file wrote for a place of this process's, as its place; null: there is none.
Ledger::Place* Ledger::take_over_carried(std::uint32_t account, const Joiner& self) {
    if (mine_count_ == sizeof mine_ / sizeof mine_[0]) return nullptr;
    const std::uint32_t number = find_carried(account, self);
    if (number == kMembers) return nullptr;
    File& file = *open_.file;
    Place& place = mine_[mine_count_];
    place = {};
    if (!(keep_over_exec_ ? place.lock.take_over_exec(open_.descriptor, number)
                          : place.lock.take(open_.descriptor, number)))
        return nullptr;
    place.number = number;
    mine_count_++;
    lock_own_bytes();  // taking a place closes a descriptor
    for (std::uint32_t stripe = number * kStripes; stripe < (number + 1) * kStripes; stripe++)
        resolve(file.accounts[account].total, file.stripes, stripe);  // of whoever wrote it, and was killed over it
    file.members[number].lock = place.lock.kind();
    file.members[number].role = keep_over_exec_ ? MemberRole::launcher : MemberRole::user;
    return &place;
}

// kMembers: there is none.
std::uint32_t Ledger::find_carried(std::uint32_t account, const Joiner& self) const {
    Member own{};
    own.pid = self.process.pid;
    own.pid_namespace = self.process.pid_namespace;
    own.start_time = self.process.start_time;
    own.image = image_number();
    own.role = keep_over_exec_ ? MemberRole::launcher : MemberRole::user;
    const std::uint32_t count = own.pid_namespace && own.start_time ? members() : 0;
    for (std::uint32_t i = 0; i < count; i++) {
        const Member& member = open_.file->members[i];
        if (member.state.load() == MemberState::live && is_carried(member.role) && member.account == account &&
            is_same_place(member, own))
            return i;
    }
    return kMembers;
}

// What this process holds is a fact, in the new file too: nobody is asked whether it fits.
void Ledger::move_places(const OpenFile& old) {
    Place places[sizeof mine_ / sizeof mine_[0]];
    const unsigned count = mine_count_;
    std::copy(mine_, mine_ + count, places);
    mine_count_ = 0;
    const Joiner self(nullptr);
    take_back_dead_locked();
    // It keeps its number, and with it its place before all that came later; and so do those who passed others.
    Granted granted;
    granted.note_all(open_.file->header.granted, now_realtime());
    granted.note_all(old.file->header.granted, now_realtime());
    std::copy(std::begin(granted.orders()), std::end(granted.orders()), open_.file->header.granted);
    if (waiting_.placed) waiting_.lock.give_up(old.descriptor, place_of_ticket(waiting_.index));
    waiting_.placed = false;
    take_ticket();
    for (unsigned i = 0; i < count; i++) {
        Membership* membership = places[i].membership;
        if (!membership || !membership->there()) continue;
        const Terms& terms = membership->terms_;
        Account* account = find(terms.kind, terms.name);
        const bool first = !account || !has_members(index_of(account));
        if (!account) account = new_account(*open_.file, terms.kind);
        Place* place = account ? take_over_carried(index_of(account), self) : nullptr;
        if (!place && account) place = take_place(account, self, nullptr);
        if (!place) {  // it goes on alone
            set_retired(membership->account_->total, false);
            continue;
        }
        if (first) {
            set_terms(account, terms);
            account->state.store(AccountState::open);
        }
        place->membership = membership;
        open_.file->members[place->number].state.store(MemberState::live);
        membership->move_to(open_, index_of(account), place->number);
        // Where somebody has the byte of its entry locked it has a place beside it.
        for (std::uint32_t more; (more = find_carried(index_of(account), self)) != kMembers;) {
            take_back(account->total, account->peak, open_.file->stripes, more * kStripes, kStripes);
            open_.file->members[more].state.store(MemberState::free);
        }
    }
    // Only now: whoever is still at the old file would have taken back what this process holds before it was read
    // there.
    for (unsigned i = 0; i < count; i++) {
        old.file->members[places[i].number].state.store(MemberState::free);
        places[i].lock.give_up(old.descriptor, places[i].number);
    }
}

}  // namespace cuslice::ledger
