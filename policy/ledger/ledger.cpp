#include "policy/ledger/ledger.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/context_sizes.h"
#include "policy/ledger/own_file.h"
#include "policy/ledger/process_identity.h"
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
// A file that was there when its lock was asked for may be gone when it is had.
constexpr unsigned kTries = 3;

void set(char* text, std::size_t size, const char* value) { snprintf(text, size, "%s", value); }

}  // namespace

// ---- the lock -------------------------------------------------------------------------------------------------------

Ledger::Locked::Locked(Ledger& ledger, const Deadline& deadline, LedgerError* why, Removed removed)
    : ledger_(ledger), guard_(ledger.mutex_), saved_errno_(errno) {
    if (!ledger_.open_.there() || !ledger_.keep_presence(why)) return;
    const bool rests = now_monotonic_seconds() < ledger_.not_before_;
    const auto rest = [&] {
        ledger_.mutex_.is_held();
        if (!rests && means_held(errno)) ledger_.not_before_ = now_monotonic_seconds() + kRest;
    };
    bool stays = false;  // in the removed file
    for (unsigned tries = 0;; tries++) {
        errno = 0;
        if (!ledger_.find_file(rests ? Deadline(kBrief) : deadline, rests, why)) {
            const int error = errno;
            stays = removed == Removed::will_do && !means_held(error) &&
                    state_of(ledger_.open_, ledger_.uuid_) == State::gone;
            if (!stays) {
                errno = error;
                rest();
                return;
            }
        }
        locked_ = lock_header_until(ledger_.open_.file->header, ledger_.locker(), rests ? Deadline(0) : deadline);
        if (!locked_) {
            rest();
            name_locker(ledger_.open_, why);
            return;
        }
        // The maker of a file put in its place meanwhile does not see what is done in this one from here on.
        if (stays || tries == kTries || state_of(ledger_.open_, ledger_.uuid_) != State::gone) break;
        unlock_header(ledger_.open_.file->header, ledger_.locker());
        locked_ = false;
    }
    Header& header = ledger_.open_.file->header;
    if (header.unfinished && !stays) ledger_.finish_file();
    for (unsigned i = 0; i < ledger_.mine_count_; i++) {
        Membership* membership = ledger_.mine_[i].membership;
        if (!membership) continue;
        membership->remember();
        // A file that is there is nobody's to retire: whoever did thought it was gone.
        if (membership->retired() && state_of(ledger_.open_, ledger_.uuid_) == State::whole)
            set_retired(membership->account_->total, false);
    }
}

Ledger::Locked::~Locked() {
    if (locked_) unlock_header(ledger_.open_.file->header, ledger_.locker());
    errno = saved_errno_;
}

void Ledger::name_locker(const OpenFile& file, LedgerError* why) {
    if (!why) return;
    const std::int32_t pid = locker_of(file.file->header);
    if (pid <= 0)
        set(why->text, sizeof why->text, "the ledger is locked by a process that does not let go of it");
    else
        snprintf(why->text, sizeof why->text, "the ledger is locked by pid %d, which %s", pid,
                 is_stopped(pid) ? "is stopped (kill -CONT lets it go on)" : "does not let go of it");
}

// ---- the file -------------------------------------------------------------------------------------------------------

bool Ledger::enter_folder(const char* folder, const char* uuid, LedgerError* why) {
    set(folder_, sizeof folder_, folder);
    set(uuid_, sizeof uuid_, uuid);
    if (!folder_handle_.open(folder_)) return set_failure(why, "can't open the folder", folder_), false;
    where_ = {folder_handle_.descriptor(), this_user(folder_), geteuid(), folder_};
    return true;
}

bool Ledger::keep_presence(LedgerError* why) {
    where_.descriptor = folder_handle_.descriptor();
    const std::uint64_t before = presence_.id();
    const auto lasts = keep_over_exec_ ? Presence::Lasts::over_exec : Presence::Lasts::until_exec;
    if (!presence_.keep(where_, uuid_, lasts, why)) return false;
    if (launchers_.id() && launchers_.adopt(where_, launchers_.id(), launchers_.descriptor())) show_launchers();
    if (!before || before == presence_.id()) return true;
    for (unsigned i = 0; i < mine_count_; i++)
        if (open_.file->members[mine_[i].number].presence.load() == before) show_presence(mine_[i].number);
    if (waiting_.placed) open_.file->tickets[waiting_.index].presence.store(presence_.id());
    return true;
}

void Ledger::show_presence(std::uint32_t number) {
    Member& member = open_.file->members[number];
    member.presence.store(presence_.id());
    member.lock = presence_.kind();
    member.descriptor = presence_.descriptor();
}

// Its descriptor may be another one by now, which the next program is to find.
void Ledger::show_launchers() {
    for (unsigned i = 0; i < mine_count_; i++) {
        Member& member = open_.file->members[mine_[i].number];
        if (member.presence.load() == launchers_.id()) member.descriptor = launchers_.descriptor();
    }
}

void Ledger::remove_presence(std::uint64_t id) {
    if (!id || id == presence_.id() || id == launchers_.id()) return;
    const File& file = *open_.file;
    for (std::uint32_t i = 0; i < members(); i++)
        if (file.members[i].state.load() == MemberState::live && file.members[i].presence.load() == id) return;
    for (const Ticket& ticket : file.tickets)
        if (ticket.state.load() == TicketState::waiting && ticket.presence.load() == id) return;
    remove_ended(where_, id);
}

void Ledger::note_leftover(const char* name) {
    constexpr std::uint64_t kOneOf = 16;
    unsigned user = 0;
    std::uint64_t id = 0;
    if (!parse_presence_name(name, &user, &id)) return;
    const DisablingLockGuard guard(mutex_);
    const bool chosen = (id >> 16 ^ now_monotonic_seconds()) % kOneOf == 0;
    if (user != where_.user || !is_of_gpu(id, uuid_) || !chosen || leftover_count_ == std::size(leftovers_)) return;
    leftovers_[leftover_count_++] = id;
}

void Ledger::remove_leftovers() {
    while (leftover_count_) remove_presence(leftovers_[--leftover_count_]);
}

bool Ledger::open(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec, LedgerError* why) {
    DisablingLockGuard guard(mutex_);
    if (open_.there()) return true;
    const int saved_errno = errno;
    keep_over_exec_ = keep_over_exec;
    const bool done = make_folder(folder, why) && enter_folder(folder, uuid, why) && keep_presence(why) &&
                      open_own(locker(), uuid, capacity, keep_over_exec, Deadline(kPatienceToOpen), &open_, path_, why);
    if (done)
        capacity_ = open_.file->header.capacity;
    else
        leave_folder();
    errno = saved_errno;
    return done;
}

bool Ledger::open_existing(const char* folder, const char* uuid, LedgerError* why) {
    DisablingLockGuard guard(mutex_);
    if (open_.there()) return true;
    const int saved_errno = errno;
    const bool done = enter_folder(folder, uuid, why) && ledger::open_existing(where_, uuid, &open_, path_, why);
    if (done)
        capacity_ = open_.file->header.capacity;
    else
        leave_folder();
    errno = saved_errno;
    return done;
}

// The places that it has are taken back by others, who find that it has ended.
void Ledger::leave_folder() {
    presence_.give_up(where_, mine_count_ == 0);
    folder_handle_.close();
    where_ = {};
}

void Ledger::close() {
    DisablingLockGuard guard(mutex_);
    if (open_.there()) drop_ticket();
    waiting_ = {};
    leave_folder();
    mine_count_ = 0;
    close_file(&open_);
}

void Ledger::forget() {
    DisablingLockGuard guard(mutex_);
    mine_count_ = 0;
    waiting_ = {};
    presence_.forget();
    launchers_.forget();
    folder_handle_.forget();
    leave_to_parent(&open_);
    forget_pid_namespace();
}

// ---- accounts and members -------------------------------------------------------------------------------------------

bool Ledger::is_mine(std::uint32_t number) const {
    return std::any_of(mine_, mine_ + mine_count_, [&](const Place& place) { return place.number == number; });
}

// An exec leaves the process as it was for /proc, and nothing of what the program before it held. This process is not
// asked about itself: see life_of().
bool Ledger::is_dead(const Member& member, std::uint32_t number) const {
    if (is_mine(number)) return false;
    const std::uint64_t presence = member.presence.load();
    if (presence && (presence == presence_.id() || presence == launchers_.id())) return false;
    const bool self = is_this_process(member);
    if (self && !is_launchers(member.role) && member.image != image_number()) return true;
    if (self && member.lock == LockKind::process) return false;
    return !lives(member, where_, Trusted::own);
}

// True if the member was dead.
bool Ledger::take_back_if_dead(std::uint32_t number) {
    File& file = *open_.file;
    Member& member = file.members[number];
    if (member.state.load() != MemberState::live || !is_dead(member, number)) return false;
    if (member.account < kAccounts) {
        Account& account = file.accounts[member.account];
        take_back(account.total, account.peak, file.stripes, number * kStripes, kStripes);
    }
    member.state.store(MemberState::free);
    remove_presence(member.presence.load());
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
// of this process is in any. Each look at a member is some calls of the kernel's; of the
// others some are looked at, so that the dead don't become many: at most one of kSome, where each join leaves one
// behind. Where memory is short all of them are.
void Ledger::take_back_some_dead_locked(const Account* account) {
    constexpr std::uint32_t kSome = 4, kFew = 16;
    const std::uint32_t count = members();
    if (count <= kFew) {
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

std::uint64_t Ledger::least_context(std::uint64_t kind) const {
    const DisablingLockGuard guard(mutex_);
    return open_.there() ? ledger::least_context(open_.file->header, kind) : 0;
}

void Ledger::note_context(std::uint64_t kind, std::uint64_t bytes) {
    const std::uint64_t known = least_context(kind);
    if (known != 0 && known <= bytes) return;
    const Locked locked(*this, Deadline(kBrief));
    if (locked) ledger::note_context(open_.file->header, kind, bytes);
}

// Frees the rest of accounts that nobody is in any more.
void Ledger::tidy_accounts() {
    File& file = *open_.file;
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        Account& account = file.accounts[i];
        if (account.state.load() == AccountState::free || has_members(i)) continue;
        account.reserved.store(0);
        // A group's limit is kept for whoever comes next.
        if (account.kind != AccountKind::group) {
            account.left = now_realtime();
            account.state.store(AccountState::free);
            continue;
        }
        account.state.store(AccountState::open);
        if (!account.left) account.left = now_realtime();
    }
    take_back_tickets();
}

bool Ledger::take_back_dead(LedgerError* why) {
    const Locked locked(*this, Deadline(kPatience), why, Locked::Removed::will_do);
    return locked && take_back_dead_locked();
}

bool Ledger::watch(AccountKind kind, const char* name, Watched* watched) {
    const Locked locked(*this, Deadline(kPatience), nullptr, Locked::Removed::will_do);
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
        if (watched->count < Watched::kMax) watched->pids[watched->count++] = member.pid;
    }
    return true;
}

bool Ledger::look_at_group(const char* name, GroupTerms* terms) {
    const Locked locked(*this, Deadline(kPatience), nullptr, Locked::Removed::will_do);
    if (!locked) return false;
    take_back_dead_locked();
    *terms = find_terms(*open_.file, find(AccountKind::group, name), name);
    return true;
}

bool Ledger::set_limit(AccountKind kind, const char* name, std::uint64_t limit) {
    const Locked locked(*this, Deadline(kPatience));
    if (!locked) return false;
    Account* account = find(kind, name);
    if (!account) return false;
    account->limit.store(limit);
    return true;
}

}  // namespace cuslice::ledger
