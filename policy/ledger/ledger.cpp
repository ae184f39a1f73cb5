#include "policy/ledger/ledger.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "policy/ledger/locked.h"
#include "policy/ledger/total.h"
#include "policy/ledger/users.h"

namespace cuslice::ledger {

namespace {

// To open a file, which others may be making at the same time.
constexpr unsigned kPatienceToOpen = 1000;  // milliseconds
// So long a lock that could not be had is not waited for again, and a file that is lost is put back only if that takes
// no longer than this.
constexpr std::uint64_t kRest = 5;  // seconds
constexpr unsigned kBrief = 20;     // milliseconds

void set(char* text, std::size_t size, const char* value) { snprintf(text, size, "%s", value); }

}  // namespace

// ---- the lock -------------------------------------------------------------------------------------------------------

Ledger::Locked::Locked(Ledger& ledger, const Deadline& deadline, Failure* why)
    : ledger_(ledger), guard_(ledger.mutex_), saved_errno_(errno) {
    if (!ledger_.open_.there()) return;
    const bool rests = now_monotonic_seconds() < ledger_.not_before_;
    if (!ledger_.find_file(rests ? Deadline(kBrief) : deadline, why)) return;
    ledger_.lock_own_bytes();
    kind_ = lock_header_until(ledger_.open_.descriptor, ledger_.open_.file->header, rests ? Deadline(0) : deadline);
    if (kind_ == LockKind::none) {
        if (means_held(errno)) {
            if (!rests) ledger_.not_before_ = now_monotonic_seconds() + kRest;
            ledger_.name_locker(why);
        } else if (why) {
            snprintf(why->text, sizeof why->text, "the ledger can't be locked: %s", strerror(errno));
        }
        return;
    }
    Header& header = ledger_.open_.file->header;
    header.locker_namespace = own_pid_namespace();
    __atomic_store_n(&header.locker, getpid(), __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < ledger_.mine_count_; i++)
        if (Membership* membership = ledger_.mine_[i].membership) membership->remember();
}

Ledger::Locked::~Locked() {
    if (kind_ != LockKind::none) unlock_header(ledger_.open_.descriptor, ledger_.open_.file->header, kind_);
    errno = saved_errno_;
}

// Locks of the process are lost with any descriptor of the file that is closed, ours or one that the host inherited.
void Ledger::lock_own_bytes() {
    for (unsigned i = 0; i < mine_count_; i++)
        if (mine_[i].lock.kind() == LockKind::process)
            lock_byte_for_process(open_.descriptor, byte_of_member(mine_[i].number));
    if (waiting_.placed && waiting_.lock.kind() == LockKind::process)
        lock_byte_for_process(open_.descriptor, byte_of_member(place_of_ticket(waiting_.index)));
}

void Ledger::name_locker(Failure* why) const {
    if (!why) return;
    const std::int32_t pid = locker_of(open_.descriptor, &open_.file->header);
    if (pid <= 0)
        set(why->text, sizeof why->text, "the ledger is locked by a process that does not let go of it");
    else
        snprintf(why->text, sizeof why->text, "the ledger is locked by pid %d, which %s", pid,
                 is_stopped(pid) ? "is stopped (kill -CONT lets it go on)" : "does not let go of it");
}

// ---- the file -------------------------------------------------------------------------------------------------------

bool Ledger::open(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec, Failure* why) {
    LockGuard guard(mutex_);
    if (open_.there()) return true;
    const int saved_errno = errno;
    set(folder_, sizeof folder_, folder);
    set(uuid_, sizeof uuid_, uuid);
    keep_over_exec_ = keep_over_exec;
    const bool done = open_own(folder, uuid, capacity, keep_over_exec, Deadline(kPatienceToOpen), &open_, why);
    if (done) capacity_ = open_.file->header.capacity;
    errno = saved_errno;
    return done;
}

bool Ledger::open_existing(const char* folder, const char* uuid, Failure* why) {
    LockGuard guard(mutex_);
    if (open_.there()) return true;
    const int saved_errno = errno;
    set(folder_, sizeof folder_, folder);
    set(uuid_, sizeof uuid_, uuid);
    const bool done = ledger::open_existing(folder, uuid, &open_, why);
    if (done) capacity_ = open_.file->header.capacity;
    errno = saved_errno;
    return done;
}

void Ledger::close() {
    LockGuard guard(mutex_);
    for (unsigned i = 0; i < mine_count_; i++) mine_[i].lock.give_up(open_.descriptor, mine_[i].number);
    mine_count_ = 0;
    if (open_.there()) drop_ticket();
    waiting_ = {};
    close_file(&open_);
}

void Ledger::forget() {
    mutex_.reset();
    for (unsigned i = 0; i < mine_count_; i++) mine_[i].lock.forget();
    mine_count_ = 0;
    waiting_ = {};
    leave_to_parent(&open_);
}

// Makes sure of the descriptor and of the file. One that was removed or overwritten is put back by whoever has a place
// in it.
bool Ledger::find_file(const Deadline& deadline, Failure* why) {
    bool gone = false;
    if (!has_descriptor(open_)) {
        char path[kPathBytes];
        if (!ledger_path(folder_, this_user(folder_), uuid_, path)) return false;
        if (!open_again(path, &open_, &gone) && !gone) {
            if (why) snprintf(why->text, sizeof why->text, "can't open %s: %s", path, strerror(errno));
            return false;
        }
    }
    const State state = gone ? State::gone : state_of(open_, uuid_);
    return (state != State::gone && state != State::damaged) || put_back(deadline, why);
}

bool Ledger::put_back(const Deadline& deadline, Failure* why) {
    OpenFile fresh;
    if (!open_own(folder_, uuid_, capacity_, keep_over_exec_, deadline, &fresh, why)) return false;
    const LockKind kind = lock_byte_until(fresh.descriptor, 0, deadline);
    if (kind == LockKind::none) return close_file(&fresh), false;
    const OpenFile old = open_;
    open_ = fresh;
    move_places(old);
    unlock_byte(open_.descriptor, 0, kind);
    // What was mapped stays so: threads may be about to read a figure there.
    OpenFile descriptor = old;
    leave_to_parent(&descriptor);
    return true;
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
        if (!account) account = new_account(terms.kind);
        Place* place = account ? take_place(account, self, nullptr) : nullptr;
        if (!place) continue;  // it goes on alone
        if (first) {
            set_terms(account, terms);
            account->state.store(AccountState::open);
        }
        place->membership = membership;
        open_.file->members[place->number].state.store(MemberState::live);
        membership->move_to(open_.file, index_of(account), place->number);
    }
    // Only now: whoever is still at the old file would have taken back what this process holds before it was read
    // there.
    for (unsigned i = 0; i < count; i++) places[i].lock.give_up(old.descriptor, places[i].number);
}

// ---- accounts and members -------------------------------------------------------------------------------------------

Account* Ledger::find(AccountKind kind, const char* name) const {
    for (Account& account : open_.file->accounts)
        if (account.state.load() != AccountState::free && account.kind == kind &&
            strncmp(account.name, name, sizeof account.name) == 0)
            return &account;
    return nullptr;
}

bool Ledger::is_mine(std::uint32_t number) const {
    return std::any_of(mine_, mine_ + mine_count_, [&](const Place& place) { return place.number == number; });
}

bool Ledger::has_members(std::uint32_t account) const {
    const File& file = *open_.file;
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++)
        if (file.members[i].state.load() == MemberState::live && file.members[i].account == account) return true;
    return false;
}

// An exec leaves the process as it was for /proc, and nothing of what the program before it held.
bool Ledger::is_dead(const Member& member, std::uint32_t number) const {
    if (is_mine(number)) return false;
    if (member.role == MemberRole::user && member.image != image_number() && is_this_process(member)) return true;
    return !lives(member, number, open_.descriptor);
}

// True if the member was dead.
bool Ledger::take_back_if_dead(std::uint32_t number) {
    File& file = *open_.file;
    Member& member = file.members[number];
    if (member.state.load() != MemberState::live || !is_dead(member, number)) return false;
    if (member.account < kAccounts) take_back(file.accounts[member.account].total, file.lanes, number * kLanes, kLanes);
    member.state.store(MemberState::free);
    return true;
}

bool Ledger::take_back_dead_locked() {
    const std::uint32_t count = members();
    bool any = false;
    for (std::uint32_t i = 0; i < count; i++) any = take_back_if_dead(i) || any;
    tidy_accounts();
    return any;
}

// For whoever joins an account (null: a new one), which has to know whether anybody is in it, and that no earlier image
// of this process is in any. Each look at a member is a call of the kernel's; of the others some are looked at, so that
// the dead don't become many, and where memory is short all of them are.
void Ledger::take_back_some_dead_locked(const Account* account) {
    constexpr std::uint32_t kSome = 16;
    const std::uint32_t count = members();
    if (count <= kSome) {
        take_back_dead_locked();
        return;
    }
    const File& file = *open_.file;
    const std::int32_t self = getpid();
    bool lives = !account;
    for (std::uint32_t i = 0; i < count; i++) {
        const Member& member = file.members[i];
        if (member.state.load() != MemberState::live) continue;
        const bool asked = !lives && member.account == index_of(account);
        if ((asked || member.pid == self) && !take_back_if_dead(i) && asked) lives = true;
    }
    const auto first = static_cast<std::uint32_t>(now_realtime() / 1000 % count);
    for (std::uint32_t i = 0; i < kSome; i++) take_back_if_dead((first + i) % count);
    tidy_accounts();
}

// What is left of accounts that nobody is in any more.
void Ledger::tidy_accounts() {
    File& file = *open_.file;
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        Account& account = file.accounts[i];
        if (account.state.load() == AccountState::free || has_members(i)) continue;
        account.reserved.store(0);
        // A group's limit is kept for whoever comes next.
        if (account.kind == AccountKind::job) {
            account.state.store(AccountState::free);
            continue;
        }
        account.state.store(AccountState::open);
        if (!account.left) account.left = now_realtime();
    }
    take_back_tickets();
}

// Groups that nobody is in any more make room, the one that was left first before the others; and living groups leave
// some to jobs.
Account* Ledger::new_account(AccountKind kind) {
    constexpr unsigned kMostGroups = kAccounts / 4 * 3;
    Account *free = nullptr, *left = nullptr;
    unsigned groups = 0;
    for (Account& account : open_.file->accounts) {
        if (account.state.load() == AccountState::free) {
            if (!free) free = &account;
            continue;
        }
        if (account.kind != AccountKind::group) continue;
        groups++;
        if (account.left && !has_members(index_of(&account)) && (!left || account.left < left->left)) left = &account;
    }
    if (!free || (kind == AccountKind::group && groups >= kMostGroups)) free = left;
    if (free) free->state.store(AccountState::free);
    return free;
}

bool Ledger::take_back_dead(Failure* why) {
    if (!open_.there()) return false;
    const Locked locked(*this, Deadline(kPatience), why);
    return locked && take_back_dead_locked();
}

bool Ledger::watch(AccountKind kind, const char* name, Watched* watched) {
    if (!open_.there()) return false;
    const Locked locked(*this, Deadline(kPatience));
    if (!locked) return false;
    take_back_dead_locked();
    const File& file = *open_.file;
    const Account* account = find(kind, name);
    if (!account) return false;
    const std::uint64_t limit = account->limit.load(), used = read_whole(account->total).bytes;
    const auto left = [](std::uint64_t top, std::uint64_t gone) { return top > gone ? top - gone : 0; };
    if (left(limit, used) < left(watched->limit, watched->used)) {
        watched->limit = limit;
        watched->used = used;
    }
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++) {
        const Member& member = file.members[i];
        if (member.state.load() != MemberState::live || &file.accounts[member.account % kAccounts] != account) continue;
        if (is_doubled(file, member)) continue;
        if (watched->count < Watched::kMost) watched->pids[watched->count++] = member.pid;
    }
    return true;
}

bool Ledger::set_limit(AccountKind kind, const char* name, std::uint64_t limit) {
    if (!open_.there()) return false;
    const Locked locked(*this, Deadline(kPatience));
    if (!locked) return false;
    Account* account = find(kind, name);
    if (!account) return false;
    account->limit.store(limit);
    return true;
}

}  // namespace cuslice::ledger
