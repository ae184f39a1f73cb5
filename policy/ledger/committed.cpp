// How much of a GPU is promised to whom: what this user's file says, and what is believed of the others'.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "config/directory_entry.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/accounts.h"
#include "policy/ledger/ledger.h"
#include "policy/ledger/rule_share.h"
#include "policy/ledger/total.h"
#include "policy/ledger/unreserved.h"

namespace cuslice::ledger {

namespace {

constexpr unsigned kPatienceToLook = 1000;  // milliseconds

void add_holder(Committed* committed, unsigned user, const Account& account, const Member& first) {
    const std::uint64_t used = __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED);
    committed->used += used;
    committed->promised += promised(account);
    if (committed->count == Committed::kMax) {
        committed->left_out++;
        return;
    }
    Holder& holder = committed->holders[committed->count++];
    holder.user = user;
    holder.pid = first.pid;
    holder.pid_namespace = first.pid_namespace;
    holder.start_time = first.start_time;
    memcpy(holder.command, first.command, sizeof holder.command);
    holder.command[sizeof holder.command - 1] = '\0';
    holder.since = first.since;
    holder.reserved = account.reserved.load();
    holder.used = used;
}

// One account, with a member that lives. `*undecided`: there is a claim whose fate is not known yet and that comes
// after ours. One that comes before ours counts as granted.
// False: it does not count.
bool add_account(const Account& account, unsigned user, const Member& first, bool waits, Committed* committed,
                 bool* undecided) {
    if (account.state.load() == AccountState::claimed) {
        if (waits && account.ticket > committed->queue.order()) {
            *undecided = true;
            return false;
        }
        committed->queue.granted(account.ticket);
    }
    committed->queue.drop(user, account.ticket);
    add_holder(committed, user, account, first);
    return true;
}

}  // namespace

void Ledger::add_own(const Account* but, Committed* committed, bool* undecided) const {
    const File& file = *open_.file;
    const unsigned self = where_.user;
    const std::uint64_t now = now_realtime();
    committed->queue.granted_all(file.header.granted, now);
    for (std::uint32_t i = 0; i < kTickets; i++)
        if ((waiting_.placed && i == waiting_.index) || waits(file.tickets[i], where_))
            committed->queue.add(waiter_of(file.tickets[i], self, now));
    bool counted[kAccounts] = {};
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
            counted[i] = add_account(account, self, *first, true, committed, undecided);
    }
    committed->left_of_rule = rule_[0] ? rule_limit_ : kNoLimitBytes;
    const Contents contents{file.accounts, file.members, members()};
    count_rules(contents, counted, rule_[0] ? rule_ : nullptr, committed);
    add_unreserved(contents, file, self, committed);
}

namespace {

// Buffers for another user's file and for a folder's entries: too much for a stack.
struct Reading {
    char entries[4096];
    Account accounts[kAccounts];
    Ticket tickets[kTickets];
    Member members[kMembers];
};

bool read_at(int file, void* to, std::size_t bytes, std::size_t offset) {
    return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// A file may say anything: no job has more than `most` bytes.
void cap(Account& account, std::uint64_t most) {
    account.reserved.store(std::min(account.reserved.load(), most));
    account.total.bytes = std::min(account.total.bytes & ~kRetired, most);
}

struct Belief {
    std::uint64_t most_of_a_job, capacity;  // bytes
    bool waits;                             // for claims that are not decided
};

void add_file(int file, const UserFolder& where, const Belief& belief, Reading& reading, Committed* committed,
              bool* undecided) {
    const unsigned user = where.user;
    Header header{};
    if (!read_at(file, &header, sizeof header, 0)) return;
    const std::size_t count = std::min(header.members, kMembers);
    // Tickets first: of one who gets what it waits for meanwhile the account is seen, and the ticket is dropped.
    if (!read_at(file, static_cast<void*>(reading.tickets), sizeof reading.tickets, offsetof(File, tickets)) ||
        !read_at(file, static_cast<void*>(reading.accounts), sizeof reading.accounts, offsetof(File, accounts)) ||
        !read_at(file, static_cast<void*>(reading.members), count * sizeof(Member), offsetof(File, members)))
        return;
    const std::uint64_t now = now_realtime();
    committed->queue.granted_all(header.granted, now);
    const std::uint64_t most = std::min(belief.most_of_a_job, belief.capacity);
    for (std::uint32_t i = 0; i < kTickets; i++) {
        if (!waits(reading.tickets[i], where)) continue;
        Waiter waiter = waiter_of(reading.tickets[i], user, now);
        // As much as it could ever be granted is kept for it. More than there is stays so: nothing is kept for that.
        if (waiter.bytes <= belief.capacity) waiter.bytes = std::min(waiter.bytes, most);
        committed->queue.add(waiter);
    }
    bool counted[kAccounts] = {};
    const std::uint64_t promised_before = committed->promised, used_before = committed->used;
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        Account& account = reading.accounts[i];
        cap(account, most);
        if (account.state.load() == AccountState::free || account.inner) continue;
        const Member* first = nullptr;
        for (std::uint32_t k = 0; k < count; k++) {
            const Member& member = reading.members[k];
            if (member.state.load() != MemberState::live || member.account != i) continue;
            if (!lives(member, where, Trusted::others)) continue;
            first = &member;
            break;
        }
        if (first) counted[i] = add_account(account, user, *first, belief.waits, committed, undecided);
    }
    const Contents contents{reading.accounts, reading.members, count};
    count_rules(contents, counted, nullptr, committed);
    add_unreserved(contents, file, where, committed);
    committed->promised = std::min(committed->promised, promised_before + belief.capacity);
    committed->used = std::min(committed->used, used_before + belief.capacity);
}

}  // namespace

namespace {

// The owner of most entries, by the majority vote of Boyer and Moore: no count for each user.
class Majority {
  public:
    void add(unsigned user) {
        if (!count_) user_ = user;
        user == user_ ? count_++ : count_--;
    }
    bool any() const { return count_ != 0; }
    unsigned user() const { return user_; }

  private:
    unsigned user_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace

namespace {

// Every entry counts here, also one that is no ledger: it is in the way all the same. One of so many is looked at.
void sample_owner(int folder, const DirectoryEntry& entry, std::uint64_t number, Majority* majority) {
    constexpr std::uint64_t kOneOf = 64;
    struct stat info {};
    if (number % kOneOf == 0 && syscall(SYS_newfstatat, folder, entry.name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        majority->add(info.st_uid);
}

void say_too_many(LedgerError* why, const char* folder, const Majority& majority, unsigned self) {
    if (!why) return;
    why->stranger = majority.any() && majority.user() != self;
    why->stranger_user = majority.user();
    if (why->stranger)
        snprintf(why->text, sizeof why->text, "%s has more files than can be read in time, most of them user %u's",
                 folder, majority.user());
    else
        snprintf(why->text, sizeof why->text, "%s has more files than can be read in time", folder);
}

}  // namespace

// Without a lock of ours: a folder may be full of them. Of what another user put there its owner is looked at before
// anything else.
bool Ledger::add_foreign(const Deadline& deadline, Claims claims, Committed* committed, bool* undecided,
                         LedgerError* why) {
    const Belief belief{others_most_.load(), capacity_, claims == Claims::open};
    UserFolder own;
    {
        const DisablingLockGuard guard(mutex_);
        where_.descriptor = folder_handle_.descriptor();
        own = where_;
    }
    const int folder = openat(own.descriptor, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (folder < 0) return true;
    void* memory = mmap(nullptr, sizeof(Reading), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        set_failure(why, "no memory to read", folder_);
        ::close(folder);
        return false;
    }
    bool all = true;
    std::uint64_t entries = 0;
    Majority majority;
    while (all) {
        Reading& reading = *static_cast<Reading*>(memory);
        const long count = syscall(SYS_getdents64, folder, reading.entries, sizeof reading.entries);
        if (count <= 0) break;
        all = !deadline.passed();
        for (long at = 0; at < count && all;) {
            const auto* entry = reinterpret_cast<const DirectoryEntry*>(reading.entries + at);
            at += entry->length;
            unsigned user = 0, number = 0, owner = 0;
            char uuid[64], path[kPathBytes];
            sample_owner(folder, *entry, entries++, &majority);
            note_leftover(entry->name);
            if (!parse_ledger_name(entry->name, &user, uuid, &number) || user == own.user || strcmp(uuid, uuid_) != 0 ||
                !ledger_path(folder_, user, uuid, path, number))
                continue;
            bool missing = false;
            const int file = open_foreign(path, user, &missing, nullptr, &owner);
            if (file < 0) continue;
            const UserFolder theirs{own.descriptor, user, owner, folder_};
            // Only the first of a user's names counts.
            if (!number || !has_name(theirs, uuid, 0, number, number))
                add_file(file, theirs, belief, reading, committed, undecided);
            ::close(file);
            all = !deadline.passed();
        }
    }
    munmap(memory, sizeof(Reading));
    ::close(folder);
    if (!all) say_too_many(why, folder_, majority, own.owner);
    return all;
}

// Bytes left for this request. Notes in `committed` how much of the rest is kept, and for whom.
std::uint64_t Ledger::room(std::uint64_t in_use, Committed* committed) const {
    const std::uint64_t outside = in_use > committed->used ? in_use - committed->used : 0;
    const std::uint64_t gone = committed->promised + outside;
    const std::uint64_t left = gone < capacity_ ? capacity_ - gone : 0;
    const std::uint64_t possible = outside < capacity_ ? capacity_ - outside : 0;
    const Waiter* kept_for = nullptr;
    const std::uint64_t had = committed->queue.room(left, possible, &kept_for);
    committed->kept = left - had;
    if (kept_for) committed->kept_for = *kept_for;
    committed->keeps = waiting_.placed && waiting_.bytes <= possible && committed->queue.past() >= kMaxPast;
    return had;
}

bool Ledger::look(std::uint64_t in_use, Committed* committed, std::uint64_t* available) {
    const Deadline deadline(kPatienceToLook);
    bool undecided = false;
    *committed = {};
    committed->queue.asks(own_order());
    if (!opened() || !add_foreign(deadline, Claims::open, committed, &undecided, nullptr)) return false;
    const Locked locked(*this, deadline);
    if (!locked) return false;
    take_back_dead_locked();
    take_ticket();
    if (waiting_.placed) committed->queue.asks(waiting_.order);  // a ticket that it has just got, too
    add_own(nullptr, committed, &undecided);
    *available = room(in_use, committed);
    return true;
}

}  // namespace cuslice::ledger
