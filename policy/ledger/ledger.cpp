#include "policy/ledger/ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "policy/ledger/total.h"

namespace cuslice::ledger {

namespace {

// For a lock that is held while accounts change hands, which takes microseconds; its owner may have been stopped.
constexpr unsigned kPatience = 500;  // milliseconds
// Two users' claims that meet are decided in microseconds.
constexpr unsigned kClaimPolls = 100;

std::atomic<unsigned> next_hint{1};
constinit thread_local unsigned hint = 0;  // which lane this thread tries first, counted from 1; 0: not chosen yet

bool same(const ProcessIdentity& self, const Member& member) {
    return member.pid == self.pid && member.start_time == self.start_time && member.pid_namespace == self.pid_namespace;
}

void pause_one_millisecond() {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
}

// What an account keeps others from having.
std::uint64_t promised(const Account& account) {
    return std::max(account.reserved.load(), __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED));
}

void add_holder(Committed* committed, unsigned user, const Account& account, const Member& first) {
    const std::uint64_t used = __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED);
    committed->used += used;
    committed->promised += promised(account);
    if (committed->count == Committed::kMost) {
        committed->left_out++;
        return;
    }
    Holder& holder = committed->holders[committed->count++];
    holder.user = user;
    holder.pid = first.pid;
    memcpy(holder.command, first.command, sizeof holder.command);
    holder.command[sizeof holder.command - 1] = '\0';
    holder.since = first.since;
    holder.reserved = account.reserved.load();
    holder.used = used;
}

}  // namespace

// ---- a place in an account ------------------------------------------------------------------------------------------

class Membership::InLane {
  public:
    explicit InLane(Membership& membership) : membership_(membership) {
        if (!hint) hint = next_hint.fetch_add(1, std::memory_order_relaxed);
        lane_ = hint % kLanes;
        for (unsigned i = 0; i < kLanes; i++, lane_ = (lane_ + 1) % kLanes)
            if (membership_.mutexes_[lane_].mutex.try_lock()) return;
        membership_.mutexes_[lane_].mutex.lock();
    }
    ~InLane() { membership_.mutexes_[lane_].mutex.unlock(); }
    InLane(const InLane&) = delete;
    InLane& operator=(const InLane&) = delete;

    std::uint32_t number() const { return membership_.number_ * kLanes + lane_; }
    Lane& lane() const { return membership_.lanes_[number()]; }

  private:
    Membership& membership_;
    std::uint32_t lane_ = 0;
};

bool Membership::reserve(std::uint64_t bytes, std::uint64_t margin, std::uint64_t* seen) {
    const std::uint64_t top = limit();
    const std::uint64_t ceiling = top == kNoLimit ? top : top > margin ? top - margin : 0;
    const InLane in(*this);
    in.lane().last_use.store(now_monotonic_seconds(), std::memory_order_relaxed);
    if (bytes > INT64_MAX) {
        if (seen) *seen = used();
        return false;
    }
    return ledger::change(account_->total, lanes_, in.number(), static_cast<std::int64_t>(bytes), ceiling, seen);
}

void Membership::change(std::int64_t bytes) {
    if (!bytes) return;
    const InLane in(*this);
    ledger::change(account_->total, lanes_, in.number(), bytes, kNoLimit);
}

std::uint64_t Membership::held_by(std::uint32_t member) const {
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < kLanes; i++) sum += lanes_[member * kLanes + i].held.load(std::memory_order_relaxed);
    return sum > 0 ? static_cast<std::uint64_t>(sum) : 0;
}

std::uint64_t Membership::held() const { return held_by(number_); }

void Membership::caches(std::uint64_t bytes) {
    const auto mebibytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes >> 20, UINT32_MAX - 1));
    file_->members[number_].caches.store(1 + mebibytes, std::memory_order_relaxed);
}

bool Membership::want(std::uint64_t bytes, std::uint64_t* state) {
    const auto account = static_cast<std::uint32_t>(account_ - file_->accounts);
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < file_->header.members && i < kMembers; i++) {
        const Member& member = file_->members[i];
        if (i == number_ || member.state.load() != MemberState::live || member.account != account) continue;
        const std::uint32_t caches = member.caches.load(std::memory_order_relaxed);
        if (!caches) continue;
        sum += held_by(i);
        *state = *state * 31 + held_by(i) + caches;
    }
    if (sum < bytes) return false;
    account_->wanted.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void Membership::forget() {
    account_ = nullptr;
    for (LaneMutex& lane : mutexes_) lane.mutex.reset();
}

// ---- the file -------------------------------------------------------------------------------------------------------

// While it lives, no other thread and no other process moves accounts or members.
class Ledger::Locked {
  public:
    explicit Locked(Ledger& ledger) : ledger_(ledger), guard_(ledger.mutex_), saved_errno_(errno) {
        char path[kPathBytes];
        bool again = false;
        if (!ledger_.open_.there() || !ledger_path(ledger_.folder_, geteuid(), ledger_.uuid_, path) ||
            !same_file(path, &ledger_.open_, &again))
            return;
        // They are lost with any descriptor of the file that the host closes, ours or one it inherited.
        for (unsigned i = 0; i < ledger_.mine_count_; i++)
            lock_byte(ledger_.open_.descriptor, byte_of_member(ledger_.mine_[i]));
        held_ = lock_byte_within(ledger_.open_.descriptor, 0, kPatience);
    }
    ~Locked() {
        if (held_) unlock_byte(ledger_.open_.descriptor, 0);
        errno = saved_errno_;
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    explicit operator bool() const { return held_; }

  private:
    Ledger& ledger_;
    LockGuard guard_;
    int saved_errno_;
    bool held_ = false;
};

bool Ledger::open(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec, Failure* why) {
    LockGuard guard(mutex_);
    if (open_.there()) return true;
    const int saved_errno = errno;
    snprintf(folder_, sizeof folder_, "%s", folder);
    snprintf(uuid_, sizeof uuid_, "%s", uuid);
    const bool done = open_own(folder, uuid, capacity, keep_over_exec, &open_, why);
    errno = saved_errno;
    return done;
}

bool Ledger::open_existing(const char* folder, const char* uuid, Failure* why) {
    LockGuard guard(mutex_);
    if (open_.there()) return true;
    const int saved_errno = errno;
    snprintf(folder_, sizeof folder_, "%s", folder);
    snprintf(uuid_, sizeof uuid_, "%s", uuid);
    const bool done = ledger::open_existing(folder, uuid, &open_);
    if (!done && why) snprintf(why->text, sizeof why->text, "there is no ledger of this version in %s", folder);
    errno = saved_errno;
    return done;
}

void Ledger::close() {
    LockGuard guard(mutex_);
    close_file(&open_);
}

void Ledger::forget() {
    mutex_.reset();
    mine_count_ = 0;
    open_ = {};  // the descriptor stays: closing it in a child gives up nothing, and it may be somebody's by now
}

Account* Ledger::find(AccountKind kind, const char* name) const {
    for (Account& account : open_.file->accounts)
        if (account.state.load() != AccountState::free && account.kind == kind &&
            strncmp(account.name, name, sizeof account.name) == 0)
            return &account;
    return nullptr;
}

bool Ledger::has_members(std::uint32_t account) const {
    const File& file = *open_.file;
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++)
        if (file.members[i].state.load() == MemberState::live && file.members[i].account == account) return true;
    return false;
}

bool Ledger::take_back_dead_locked() {
    File& file = *open_.file;
    bool any = false;
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++) {
        Member& member = file.members[i];
        if (member.state.load() != MemberState::live) continue;
        if (std::find(mine_, mine_ + mine_count_, i) != mine_ + mine_count_) continue;
        if (lives(member, i, open_.descriptor)) continue;
        if (member.account < kAccounts) take_back(file.accounts[member.account].total, file.lanes, i * kLanes, kLanes);
        member.state.store(MemberState::free);
        any = true;
    }
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        Account& account = file.accounts[i];
        if (account.state.load() == AccountState::free || has_members(i)) continue;
        account.reserved.store(0);
        // A group's limit is kept for whoever comes next.
        if (account.kind == AccountKind::job) account.state.store(AccountState::free);
    }
    return any;
}

bool Ledger::take_back_dead() {
    if (!open_.there()) return false;
    const Locked locked(*this);
    return locked && take_back_dead_locked();
}

void Ledger::add_own(Committed* committed, const Account* but) const {
    const File& file = *open_.file;
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        const Account& account = file.accounts[i];
        if (account.state.load() == AccountState::free || account.inner) continue;
        const Member* first = nullptr;
        for (std::uint32_t k = 0; k < file.header.members && k < kMembers; k++) {
            const Member& member = file.members[k];
            if (member.state.load() != MemberState::live || member.account != i) continue;
            first = &member;
            break;
        }
        if (!first) continue;
        if (&account == but)
            committed->used += __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED);
        else
            add_holder(committed, geteuid(), account, *first);
    }
}

namespace {

// One other user's file. `*undecided`: it has a claim whose fate is not known yet and that comes after ours.
void add_file(int file, unsigned user, std::uint64_t ticket, Committed* committed, bool* undecided) {
    // A file at a time, and never on two threads at once: the ledger's lock is held.
    static Account accounts[kAccounts];
    static Member members[kMembers];
    Header header{};
    if (pread(file, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return;
    const std::size_t count = std::min(header.members, kMembers);
    if (pread(file, static_cast<void*>(accounts), sizeof accounts, offsetof(File, accounts)) !=
            static_cast<ssize_t>(sizeof accounts) ||
        pread(file, static_cast<void*>(members), count * sizeof(Member), offsetof(File, members)) !=
            static_cast<ssize_t>(count * sizeof(Member)))
        return;
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        const Account& account = accounts[i];
        const AccountState state = account.state.load();
        if (state == AccountState::free || account.inner) continue;
        const Member* first = nullptr;
        for (std::uint32_t k = 0; k < count; k++) {
            const Member& member = members[k];
            if (member.state.load() != MemberState::live || member.account != i || !lives(member, k, file)) continue;
            first = &member;
            break;
        }
        if (!first) continue;
        if (state == AccountState::claimed && account.ticket > ticket)
            *undecided = true;
        else
            add_holder(committed, user, account, *first);
    }
}

}  // namespace

// Other users' files of this GPU. The folder is read without the C library's opendir, which allocates.
void Ledger::add_foreign(Committed* committed, bool* undecided, std::uint64_t ticket) const {
    const int folder = ::open(folder_, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    alignas(8) char entries[4096];
    struct Entry {  // linux_dirent64, as getdents64(2) has it
        std::uint64_t inode;
        std::int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[1];
    };
    for (long count; (count = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
        for (long at = 0; at < count;) {
            const auto* entry = reinterpret_cast<const Entry*>(entries + at);
            at += entry->length;
            unsigned user = 0;
            char uuid[64], path[kPathBytes];
            if (!parse_ledger_name(entry->name, &user, uuid) || user == geteuid() || strcmp(uuid, uuid_) != 0 ||
                !ledger_path(folder_, user, uuid, path))
                continue;
            const int file = open_foreign(path, user);
            if (file < 0) continue;
            add_file(file, user, ticket, committed, undecided);
            ::close(file);
        }
    ::close(folder);
}

// What is committed but for one account, whose claim meets others' by its ticket; without one every claim counts.
void Ledger::add_up(const Account* but, std::uint64_t in_use, Committed* committed, std::uint64_t* available) {
    const std::uint64_t ticket = but ? but->ticket : ~0ull;
    for (unsigned poll = 0;; poll++) {
        *committed = {};
        bool undecided = false;
        add_own(committed, but);
        add_foreign(committed, &undecided, ticket);
        if (!undecided || poll == kClaimPolls) break;
        pause_one_millisecond();
    }
    const std::uint64_t capacity = open_.file->header.capacity;
    const std::uint64_t outside = in_use > committed->used ? in_use - committed->used : 0;
    const std::uint64_t gone = committed->promised + outside;
    *available = gone < capacity ? capacity - gone : 0;
}

bool Ledger::look(std::uint64_t in_use, Committed* committed, std::uint64_t* available) {
    const Locked locked(*this);
    if (!locked) return false;
    take_back_dead_locked();
    add_up(nullptr, in_use, committed, available);
    return true;
}

bool Ledger::watch(AccountKind kind, const char* name, Watched* watched) {
    if (!open_.there()) return false;
    const Locked locked(*this);
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
        if (watched->count < Watched::kMost) watched->pids[watched->count++] = member.pid;
    }
    return true;
}

bool Ledger::set_limit(AccountKind kind, const char* name, std::uint64_t limit) {
    if (!open_.there()) return false;
    const Locked locked(*this);
    if (!locked) return false;
    Account* account = find(kind, name);
    if (!account) return false;
    account->limit.store(limit);
    return true;
}

Joined Ledger::join(const Request& request, std::uint64_t in_use, Membership* membership, Committed* committed,
                    std::uint64_t* available, Failure* why) {
    const Locked locked(*this);
    const auto unavailable = [&](const char* text) {
        if (why) snprintf(why->text, sizeof why->text, "%s", text);
        return Joined::unavailable;
    };
    if (!locked) return unavailable("the ledger's lock is held by a process that does not let go of it");
    if (strlen(request.name) >= sizeof Account::name) return unavailable("the name is too long");
    take_back_dead_locked();

    File& file = *open_.file;
    const ProcessIdentity self = this_process();
    Account* account = find(request.kind, request.name);
    const auto index = [&] { return static_cast<std::uint32_t>(account - file.accounts); };
    const auto enter = [&](std::uint32_t number) {
        membership->file_ = &file;
        membership->lanes_ = file.lanes;
        membership->number_ = number;
        mine_[mine_count_++] = number;
        __atomic_store_n(&membership->account_, account, __ATOMIC_RELEASE);
        return Joined::yes;
    };
    if (mine_count_ == sizeof mine_ / sizeof mine_[0]) return unavailable("too many accounts for one process");

    if (account)
        for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++) {
            const Member& member = file.members[i];
            if (member.state.load() != MemberState::live || member.account != index() || !same(self, member)) continue;
            lock_byte(open_.descriptor, byte_of_member(i));
            return enter(i);
        }

    const bool first = !account || !has_members(index());
    const bool known = account != nullptr;
    if (!account) {
        account = std::find_if(file.accounts, file.accounts + kAccounts,
                               [](const Account& a) { return a.state.load() == AccountState::free; });
        if (account == file.accounts + kAccounts) return unavailable("there is no room for one more account");
    }
    std::uint32_t number = 0;
    while (number < kMembers && (file.members[number].state.load() != MemberState::free ||
                                 !lock_byte(open_.descriptor, byte_of_member(number))))
        number++;
    if (number == kMembers) return unavailable("there is no room for one more process");

    // First the place, then the claim: a claim without a living member is nobody's.
    Member& member = file.members[number];
    member.account = index();
    member.caches.store(0);
    member.pid = self.pid;
    member.pid_namespace = self.pid_namespace;
    member.start_time = self.start_time;
    member.since = now_realtime();
    if (request.command)
        snprintf(member.command, sizeof member.command, "%s", request.command);
    else
        command_of_this_process(member.command, sizeof member.command);
    for (std::uint32_t lane = 0; lane < kLanes; lane++)
        file.lanes[number * kLanes + lane].last_use.store(now_monotonic_seconds());
    if (number >= file.header.members) file.header.members = number + 1;

    if (first) {
        if (!known) {
            account->kind = request.kind;
            account->inner = request.inner;
            memset(account->name, 0, sizeof account->name);
            memcpy(account->name, request.name, strlen(request.name));
            account->total.bytes = 0;  // the stamp stays: it is some lane's, and noted there when it is replaced
        }
        if (!known || request.limit != kNoLimitBytes) account->limit.store(request.limit);
        account->ticket = now_realtime();
        account->reserved.store(request.inner ? 0 : request.reserved);
        account->state.store(AccountState::claimed);
    }
    member.state.store(MemberState::live);
    const bool asks = first && request.reserved && !request.inner;
    if (asks) add_up(account, in_use, committed, available);
    if (asks && request.reserved > *available) {
        member.state.store(MemberState::free);
        account->reserved.store(0);
        account->state.store(known ? AccountState::open : AccountState::free);
        unlock_byte(open_.descriptor, byte_of_member(number));
        return Joined::refused;
    }
    if (first) account->state.store(AccountState::open);
    return enter(number);
}

}  // namespace cuslice::ledger
