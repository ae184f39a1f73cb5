// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/lost.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/queue.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

// Leaves a copy in the place of the old mapping: threads may be about to read a figure there, and the room that a
// removed file takes is given back once nobody has it mapped.
void copy_removed(const OpenFile& old) {
    const File& file = *old.file;
    void* const memory =
        mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    auto* const copy = static_cast<char*>(memory);
    const auto* const from = reinterpret_cast<const char*>(&file);
    const size_t count = std::min({file.header.members, file.header.room, kMembers});
    memcpy(copy, from, offsetof(File, members) + count * sizeof(Member));
    memcpy(copy + offsetof(File, stripes), from + offsetof(File, stripes), count * kStripes * sizeof(Stripe));
    if (mremap(memory, sizeof(File), sizeof(File), MREMAP_MAYMOVE | MREMAP_FIXED, old.file) == MAP_FAILED)
        munmap(memory, sizeof(File));
}

}  // namespace

bool keep_file(Roster& roster, const Deadline& deadline, bool rests, LedgerError* why) {
    bool lost = false;
    if (!roster.file.find(&lost, why))
        return false;
    if (!lost)
        return true;
    // Without a descriptor the name alone says that it is gone, as it does in a program that has changed its root: so
    // nothing is done to the others who are in it.
    const bool removed = roster.file.state() == State::gone;
    OpenFile fresh;
    char path[kPathBytes];
    if (!make_folder(roster.file.folder().path(), why) || !roster.keep_presence(why))
        return false;
    const Locker self = roster.file.folder().locker();
    if (!roster.file.open_successor(self, removed, deadline, &fresh, path, why))
        return false;
    // Under the old file's lock, too: whoever makes yet another file sees this process in one of them. Its owner may
    // have been stopped, so it is waited for once.
    const OpenFile old = roster.file.now();
    const auto lock = [&](const OpenFile& file) {
        return lock_header_until(file.file->header, self, rests ? Deadline(0) : deadline);
    };
    const bool old_first = is_locked_before(old, fresh);
    bool of_old = removed && old_first && lock(old);
    const bool of_fresh = lock(fresh);
    const int error = of_fresh ? EAGAIN : errno;
    if (removed && !old_first && of_fresh)
        of_old = lock(old);
    const bool waits = rests && removed && !of_old;
    const bool done = of_fresh && !waits;
    bool moved = false;
    if (done) {
        roster.file.replace(fresh, path);
        // Somebody may have made it who knew nothing of the old one.
        if (removed) {
            set_retired(*old.file, true);
            for (const Carried which : {Carried::places, Carried::entries})
                carry_over(old, fresh, which, self.where);
        }
        moved = roster.move_places(old);
    } else {
        name_locker((waits ? old : fresh).file->header, why);
    }
    if (of_fresh)
        unlock_header(fresh.file->header, self);
    if (of_old)
        unlock_header(old.file->header, self);
    if (!done) {
        close_file(&fresh);
        errno = error;
        return false;
    }
    if (moved) {
        copy_removed(old);
        roster.left_copy.take(old.file);
    }
    OpenFile descriptor = old;
    leave_to_parent(&descriptor);
    return true;
}

// Moves this process's places to the new file. Memory that it holds is a fact there too: nobody is asked whether it
// fits. False: some stays where it was, as there is no room in the new file.
bool Roster::move_places(const OpenFile& old) {
    OwnPlace places[OwnPlaces::kMost];
    const unsigned count = places_.take_out(places);
    bool all = true;
    const Joiner self(nullptr);
    take_back_dead();
    // It keeps its number, and with it its place before all that came later; and so do those who passed others.
    merge_granted(file.contents().header, old.file->header);
    ticket_.lose();
    take_ticket();
    for (unsigned i = 0; i < count; i++) {
        Membership* membership = places[i].membership;
        if (!membership || !membership->there())
            continue;
        const Terms& terms = membership->terms_;
        Account* account = find(terms.kind, terms.name);
        const bool first = !has_members(account);
        if (!account)
            account = new_account(file.contents(), terms.kind);
        OwnPlace* place = account ? places_.take_over_carried(file, index_of(account), self) : nullptr;
        if (!place && account)
            place = places_.take(file, index_of(account), self, nullptr);
        if (!place) {  // it goes on alone
            set_retired(membership->account_->total, false);
            all = false;
            continue;
        }
        if (first) {
            set_terms(account, terms);
            account->state.store(AccountState::open);
        }
        if (terms.kind == AccountKind::group)
            bring_limit(account, terms.limit);
        place->membership = membership;
        file.contents().members[place->number].state.store(MemberState::live);
        membership->move_to(file.now(), index_of(account), place->number);
        // An earlier maker of the file may have entered it once more.
        places_.drop_carried(file, index_of(account), self);
    }
    // Only now: whoever is still at the old file would have taken back what this process holds before it was read
    // there.
    for (unsigned i = 0; i < count; i++)
        old.file->members[places[i].number].state.store(MemberState::free);
    return all;
}

}  // namespace cuslice::ledger
