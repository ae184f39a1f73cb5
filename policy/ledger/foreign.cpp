// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/foreign.h"

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
#include "policy/ledger/rule_share.h"
#include "policy/ledger/total.h"
#include "policy/ledger/unreserved.h"

namespace cuslice::ledger {

namespace {

// Buffers for another user's file and for a folder's entries: too much for a stack.
struct Reading {
    char entries[4096];
    Account accounts[kAccounts];
    Ticket tickets[kTickets];
    Member members[kMembers];
};

// A file may say anything: no job has more than `most` bytes.
void cap(Account& account, uint64_t most) {
    account.reserved.store(std::min(account.reserved.load(), most));
    account.total.bytes = std::min(account.total.bytes & ~kRetired, most);
}

struct Belief {
    uint64_t most_of_a_job, capacity;  // bytes
    bool waits;                        // for claims that are not decided
};

void add_file(int file, const UserFolder& where, const Belief& belief, Reading& reading, Committed* committed,
              bool* undecided) {
    const unsigned user = where.user;
    Header header{};
    if (!read_at(file, &header, sizeof header, 0))
        return;
    const std::span<const Member> members(reading.members, std::min(header.members, kMembers));
    // Tickets first: of one who gets what it waits for meanwhile the account is seen, and the ticket is dropped.
    if (!read_at(file, static_cast<void*>(reading.tickets), sizeof reading.tickets, offsetof(File, tickets)) ||
        !read_at(file, static_cast<void*>(reading.accounts), sizeof reading.accounts, offsetof(File, accounts)) ||
        !read_at(file, static_cast<void*>(reading.members), members.size_bytes(), offsetof(File, members)))
        return;
    const uint64_t now = now_realtime();
    committed->queue.granted_all(header.granted, now);
    const uint64_t most = std::min(belief.most_of_a_job, belief.capacity);
    for (uint32_t i = 0; i < kTickets; i++) {
        if (!waits(reading.tickets[i], where))
            continue;
        Waiter waiter = waiter_of(reading.tickets[i], user, now);
        // As much as it could ever be granted is kept for it. More than there is stays so: nothing is kept for that.
        if (waiter.bytes <= belief.capacity)
            waiter.bytes = std::min(waiter.bytes, most);
        committed->queue.add(waiter);
    }
    bool counted[kAccounts] = {};
    const uint64_t promised_before = committed->promised, used_before = committed->used;
    for (uint32_t i = 0; i < kAccounts; i++) {
        Account& account = reading.accounts[i];
        cap(account, most);
        if (is_free(account) || account.inner)
            continue;
        const auto still_lives = [&](const Member& member) { return lives(member, where, Trusted::others); };
        const Member* const first = find_member(members, i, still_lives);
        if (first)
            counted[i] = add_account(account, user, *first, belief.waits, committed, undecided);
    }
    const Contents contents{reading.accounts, members};
    count_rules(contents, counted, nullptr, committed);
    add_unreserved(contents, file, where, committed);
    committed->promised = std::min(committed->promised, promised_before + belief.capacity);
    committed->used = std::min(committed->used, used_before + belief.capacity);
}

// The owner of most entries, by the majority vote of Boyer and Moore: no count for each user.
class Majority {
  public:
    void add(unsigned user) {
        if (!count_)
            user_ = user;
        user == user_ ? count_++ : count_--;
    }
    bool any() const { return count_ != 0; }
    unsigned user() const { return user_; }

  private:
    unsigned user_ = 0;
    uint64_t count_ = 0;
};

// Every entry counts here, also one that is no ledger: it is in the way all the same. One of so many is looked at.
void sample_owner(int folder, const DirectoryEntry& entry, uint64_t number, Majority* majority) {
    constexpr uint64_t kOneOf = 64;
    struct stat info {};
    if (number % kOneOf == 0 && stat_name(folder, entry.name, &info))
        majority->add(info.st_uid);
}

void say_too_many(LedgerError* why, const char* folder, const Majority& majority, unsigned self) {
    if (!majority.any() || majority.user() == self)
        return set_text(why, "%s has more files than can be read in time", folder);
    set_text(why, "%s has more files than can be read in time, most of them user %u's", folder, majority.user());
    set_stranger(why, majority.user());
}

}  // namespace

// Without a lock of ours: a folder may be full of them. Of what another user put there its owner is looked at before
// anything else.
bool add_foreign(LedgerFile& ours, uint64_t most_of_a_job, const Deadline& deadline, Claims claims,
                 Committed* committed, bool* undecided, LedgerError* why) {
    const Belief belief{most_of_a_job, ours.capacity(), claims == Claims::open};
    const UserFolder own = ours.look_at_folder();
    const int folder = openat(own.descriptor, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (folder < 0)
        return true;
    void* memory = mmap(nullptr, sizeof(Reading), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        set_failure(why, "no memory to read", own.path);
        ::close(folder);
        return false;
    }
    bool all = true;
    uint64_t entries = 0;
    Majority majority;
    while (all) {
        Reading& reading = *static_cast<Reading*>(memory);
        const long count = syscall(SYS_getdents64, folder, reading.entries, sizeof reading.entries);
        if (count <= 0)
            break;
        all = !deadline.passed();
        for (long at = 0; at < count && all;) {
            const auto* entry = reinterpret_cast<const DirectoryEntry*>(reading.entries + at);
            at += entry->length;
            unsigned user = 0, number = 0, owner = 0;
            char uuid[64], path[kPathBytes];
            sample_owner(folder, *entry, entries++, &majority);
            ours.note_leftover(entry->name);
            if (!parse_ledger_name(entry->name, &user, uuid, &number) || user == own.user ||
                strcmp(uuid, ours.uuid()) != 0 || !ledger_path(own.path, user, uuid, path, number))
                continue;
            bool missing = false;
            const int file = open_foreign(path, user, &missing, nullptr, &owner);
            if (file < 0)
                continue;
            const UserFolder theirs{own.descriptor, user, owner, own.path};
            // Only the first of a user's names counts.
            if (!has_name(theirs, uuid, number, number))
                add_file(file, theirs, belief, reading, committed, undecided);
            ::close(file);
            all = !deadline.passed();
        }
    }
    munmap(memory, sizeof(Reading));
    ::close(folder);
    if (!all)
        say_too_many(why, own.path, majority, own.owner);
    return all;
}

}  // namespace cuslice::ledger
