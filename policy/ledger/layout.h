// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

// The host ledger: one file for each user and GPU, in a folder that all users share. It says who holds how much of the
// GPU's memory, under which limit, and how much is promised to whom.
//
// Its owner's processes map it. Everybody else reads it with pread and believes it only if the file belongs to the user
// whose number is in its name. Nobody locks it: another user's lock for reading would stand in the way. A number in the
// header says who may change accounts, members and tickets, and each process shows that it lives by a file of its own
// (presence.h).
namespace cuslice::ledger {

inline constexpr uint64_t kMagic = 0x7265676465'6c7563;  // "culedger"
inline constexpr uint32_t kVersion = 6;
inline constexpr uint32_t kAccounts = 128;
inline constexpr uint32_t kMembers = 2048;
// So many at first, for which there is space in the file; the rest of it is a hole, and filled by as many at a time.
inline constexpr uint32_t kRoom = 192;
// Stripes of a member: so many of its threads can change a total at the same time.
inline constexpr uint32_t kStripes = 4;
inline constexpr uint32_t kTickets = 64;
// Latest grants whose request numbers are kept.
inline constexpr uint32_t kLatest = 8;
// Kinds of contexts whose size is kept.
inline constexpr uint32_t kContextKinds = 2;

// A total that many processes change, and who changed it last: stripe number in the upper 16 bits, that stripe's
// operation in the others. Both change in one compare-exchange of 16 bytes.
struct alignas(16) Stamped {
    uint64_t bytes;
    uint64_t stamp;
};

enum class AccountState : uint32_t { free, claimed, open };
enum class AccountKind : uint32_t { job, group, rule };

// Processes that share one limit. `total` is always the sum of what its members' stripes hold.
struct alignas(128) Account {
    Stamped total;
    std::atomic<uint64_t> limit;     // bytes; ~0: none
    std::atomic<uint64_t> reserved;  // bytes promised, whether used or not
    std::atomic<AccountState> state;
    AccountKind kind;
    uint32_t inner;                // 1: lies within another account, and is not added to what is committed
    std::atomic<uint32_t> wanted;  // how often a member was short of memory that others may have cached
    // Bytes: the most that `total` has been, as it was noted when the total was about to fall; see peak_of().
    std::atomic<uint64_t> peak;
    uint64_t ticket;  // the request's number in the queue: of two claims at once the earlier wins
    uint64_t left;    // CLOCK_REALTIME when its last member was missed, also once it is free; 0: it has members
    char name[64];
};

inline bool is_free(const Account& account) { return account.state.load() == AccountState::free; }

enum class MemberState : uint32_t { free, live };

// The kind of lock that a process keeps on its presence.
enum class LockKind : uint32_t {
    none,
    process,    // a lock of the process: lost with any descriptor of the file that it closes, kept over exec
    open_file,  // a lock of an open file that is mapped: kept whatever is closed, lost at exec
};

// Purpose of a member.
enum class MemberRole : uint32_t {
    user,      // it holds memory
    launcher,  // it holds a reservation for the program that the launcher becomes
    // The same of a process that is still in a file which was removed, entered by whoever made this one.
    carried,
    carried_launcher,
};
inline bool is_carried(MemberRole role) { return role == MemberRole::carried || role == MemberRole::carried_launcher; }
inline bool is_launchers(MemberRole role) {
    return role == MemberRole::launcher || role == MemberRole::carried_launcher;
}

// One process in one account. Written by its process alone, except that whoever has the header's lock may end a dead
// one's, and enter and change a carried one.
struct alignas(128) Member {
    std::atomic<MemberState> state;
    uint32_t account;
    int32_t pid;
    std::atomic<uint32_t> caches;    // 0, or it looks at `wanted`: 1 and the MiB that it could give back
    uint64_t pid_namespace;          // the inode of /proc/self/ns/pid: where `pid` means something
    uint64_t start_time;             // field 22 of /proc/PID/stat
    uint64_t since;                  // CLOCK_REALTIME, nanoseconds
    uint64_t image;                  // which program of the process: another one after an exec
    std::atomic<uint64_t> presence;  // the number of the process's presence
    LockKind lock;                   // that the presence has
    MemberRole role;
    int32_t descriptor;  // a launcher's: that of its presence, which an exec keeps
    char command[48];
    // 1 and the number of operations in its stripes after which nothing was in flight; see holdings.h. 0: not known.
    std::atomic<uint64_t> settled;
};

inline bool is_live(const Member& member) { return member.state.load() == MemberState::live; }
inline bool is_live_in(const Member& member, uint32_t account) { return is_live(member) && member.account == account; }

// One of a member's stripes: bytes that it took and gave back. Their sum is the only truth of what the member holds.
// One thread at a time writes a stripe. Its last operation can be told to have happened or not, wherever its process
// died in it.
struct alignas(256) Stripe {
    std::atomic<int64_t> held;               // bytes; negative where another stripe took what this one gave back
    std::atomic<uint64_t> begun, completed;  // numbers of its last operations
    std::atomic<int64_t> before, delta;      // of the one that was begun last
    std::atomic<uint64_t> last_use;          // CLOCK_MONOTONIC at the last reservation, seconds
    // By others: the last of this stripe's stamps that somebody has replaced.
    alignas(128) std::atomic<uint64_t> replaced;
};
static_assert(offsetof(Account, peak) < 64, "in the cache line that a change of the total has anyway");
static_assert(sizeof(Account) == 256 && sizeof(Member) == 128 && sizeof(Stripe) == 256);

enum class TicketState : uint32_t { free, waiting };

// A process that waits until a reservation can be had. Written by its process alone, except that whoever has the
// header's lock may end a dead one's.
struct alignas(128) Ticket {
    std::atomic<TicketState> state;
    int32_t pid;
    uint64_t pid_namespace, start_time;  // as a member's
    uint64_t since;                      // CLOCK_REALTIME when it began to wait, nanoseconds
    uint64_t order;                      // its number: CLOCK_REALTIME then, and later than all before it in this file
    uint64_t bytes;                      // that it waits for
    std::atomic<uint64_t> looked;        // CLOCK_REALTIME when it looked last, nanoseconds
    std::atomic<uint32_t> aside;         // 1: something is kept for it on another GPU, so nothing here
    LockKind lock;
    std::atomic<uint64_t> presence;  // as a member's
    char command[48];
};
static_assert(sizeof(Ticket) == 128);

// The fewest bytes that a process's first context took which was made in the same way; see context_sizes.h.
struct ContextSize {
    std::atomic<uint64_t> kind;   // of driver, flags and variables; 0: none
    std::atomic<uint64_t> bytes;  // 0: not known
};

struct Header {
    uint64_t magic;
    uint32_t version, size;
    uint64_t capacity;  // of the GPU, bytes
    uint64_t id;        // random: another file under the same name has another
    char uuid[64];
    uint32_t members;      // slots below this have been in use
    uint32_t room;         // members that there is space for
    uint64_t holder;       // the presence of who has the lock; 0: nobody
    uint64_t signed_by;    // the holder that wrote the next five
    int32_t locker;        // its pid; 0: nobody
    LockKind locker_lock;  // that its presence has
    uint64_t locker_namespace, locker_start;
    uint32_t handed_on;                   // how often the lock was let go of
    uint32_t unfinished;                  // 1: its maker has not looked yet for who went to another file of this name
    uint64_t last_order;                  // the last number that a request was given
    uint64_t granted[kLatest];            // the latest requests that were granted, by their numbers, the earliest first
    ContextSize contexts[kContextKinds];  // 0 in files of before there was this field
};

struct File {
    Header header;
    Account accounts[kAccounts];
    Ticket tickets[kTickets];
    Member members[kMembers];
    Stripe stripes[kMembers * kStripes];
};
// The places that have been in use. A file may say anything of their number.
inline std::span<const Member> members_of(const File& file) {
    return {file.members, std::min<uint32_t>(file.header.members, kMembers)};
}
inline uint32_t index_of(const File& file, const Account* account) {
    return static_cast<uint32_t>(account - file.accounts);
}
inline uint32_t index_of(const File& file, const Member* member) {
    return static_cast<uint32_t>(member - file.members);
}
static_assert(offsetof(Header, contexts) == 224 && offsetof(File, accounts) == 256, "what version 6 has");
static_assert(kMembers * kStripes < 1 << 16, "a stamp has 16 bits for the stripe");

}  // namespace cuslice::ledger
