// A file that was removed or written over while this process uses it: the way to the one that takes its place.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/group_terms.h"
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
    char path[kPathBytes];
    if (!make_folder(folder_, why) || !keep_presence(why)) return false;
    const Locker self = locker();
    if (!open_own(self, uuid_, capacity_, keep_over_exec_, deadline, &fresh, path, why, removed ? &open_ : nullptr))
        return false;
    // Under the old file's lock, too: whoever makes yet another file sees this process in one of them. Its owner may
    // have been stopped, so it is waited for once.
    const OpenFile old = open_;
    const auto lock = [&](const OpenFile& file) {
        return lock_header_until(file.file->header, self, rests ? Deadline(0) : deadline);
    };
    const bool old_first = is_locked_before(old, fresh);
    bool of_old = removed && old_first && lock(old);
    const bool of_fresh = lock(fresh);
    const int error = of_fresh ? EAGAIN : errno;
    if (removed && !old_first && of_fresh) of_old = lock(old);
    const bool waits = rests && removed && !of_old;
    const bool done = of_fresh && !waits;
    bool moved = false;
    if (done) {
        open_ = fresh;
        snprintf(path_, sizeof path_, "%s", path);
        // Somebody may have made it who knew nothing of the old one.
        if (removed) {
            set_retired(*old.file, true);
            for (const Carried which : {Carried::places, Carried::entries}) carry_over(old, open_, which, self.where);
        }
        moved = move_places(old);
    } else {
        name_locker(waits ? old : fresh, why);
    }
    if (of_fresh) unlock_header(fresh.file->header, self);
    if (of_old) unlock_header(old.file->header, self);
    if (!done) {
        close_file(&fresh);
        errno = error;
        return false;
    }
    if (moved) copy_removed(old);
    OpenFile descriptor = old;
    leave_to_parent(&descriptor);
    return true;
}

// Leaves a copy in the place of the old mapping: threads may be about to read a figure there, and the room that a
// removed file takes is given back once nobody has it mapped.
void Ledger::copy_removed(const OpenFile& old) {
    const File& file = *old.file;
    void* const memory =
        mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    auto* const copy = static_cast<char*>(memory);
    const auto* const from = reinterpret_cast<const char*>(&file);
    const std::size_t count = std::min({file.header.members, file.header.room, kMembers});
    memcpy(copy, from, offsetof(File, members) + count * sizeof(Member));
    memcpy(copy + offsetof(File, stripes), from + offsetof(File, stripes), count * kStripes * sizeof(Stripe));
    if (mremap(memory, sizeof(File), sizeof(File), MREMAP_MAYMOVE | MREMAP_FIXED, old.file) == MAP_FAILED)
        munmap(memory, sizeof(File));
}

// Finishes a file whose maker was killed before it had seen everybody.
void Ledger::finish_file() {
    const Locker self = locker();
    Removed removed(open_.descriptor, path_, uuid_, nullptr, self);
    if (removed.carry_to(open_)) open_.file->header.unfinished = 0;
}

// The entry that whoever made this file wrote for a place of this process's, as its place; null: there is none.
Ledger::Place* Ledger::take_over_carried(std::uint32_t account, const Joiner& self) {
    if (mine_count_ == sizeof mine_ / sizeof mine_[0]) return nullptr;
    const std::uint32_t number = find_carried(account, self);
    if (number == kMembers) return nullptr;
    File& file = *open_.file;
    Place& place = mine_[mine_count_++];
    place = {};
    place.number = number;
    for (std::uint32_t stripe = number * kStripes; stripe < (number + 1) * kStripes; stripe++)
        resolve(file.accounts[account].total, file.stripes, stripe);  // of whoever wrote it, and was killed over it
    show_presence(number);
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

// Moves this process's places to the new file. Memory that it holds is a fact there too: nobody is asked whether it
// fits. False: some stays where it was, as there is no room in the new file.
bool Ledger::move_places(const OpenFile& old) {
    Place places[sizeof mine_ / sizeof mine_[0]];
    const unsigned count = mine_count_;
    std::copy(mine_, mine_ + count, places);
    mine_count_ = 0;
    bool all = true;
    const Joiner self(nullptr);
    take_back_dead_locked();
    // It keeps its number, and with it its place before all that came later; and so do those who passed others.
    Granted granted;
    granted.note_all(open_.file->header.granted, now_realtime());
    granted.note_all(old.file->header.granted, now_realtime());
    std::copy(std::begin(granted.orders()), std::end(granted.orders()), open_.file->header.granted);
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
            all = false;
            continue;
        }
        if (first) {
            set_terms(account, terms);
            account->state.store(AccountState::open);
        }
        if (terms.kind == AccountKind::group) bring_limit(account, terms.limit);
        place->membership = membership;
        open_.file->members[place->number].state.store(MemberState::live);
        membership->move_to(open_, index_of(account), place->number);
        // An earlier maker of the file may have entered it once more.
        for (std::uint32_t more; (more = find_carried(index_of(account), self)) != kMembers;) {
            take_back(account->total, account->peak, open_.file->stripes, more * kStripes, kStripes);
            open_.file->members[more].state.store(MemberState::free);
        }
    }
    // Only now: whoever is still at the old file would have taken back what this process holds before it was read
    // there.
    for (unsigned i = 0; i < count; i++) old.file->members[places[i].number].state.store(MemberState::free);
    return all;
}

}  // namespace cuslice::ledger
