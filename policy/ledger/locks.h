#pragma once
#include "policy/ledger/layout.h"

// Locks on bytes of a ledger's file, and how long they are waited for.
namespace cuslice::ledger {

// A moment of the kernel's CLOCK_MONOTONIC that ends all waiting of one operation.
class Deadline {
  public:
    explicit Deadline(unsigned milliseconds);
    bool passed() const;
    // Sleeps for a moment. False if the deadline has passed.
    bool pause();
    // Sleeps until `word` is woken or is no longer `value`, at most for so many nanoseconds. False if that time ran
    // out.
    bool pause_for(const std::int32_t& word, std::int32_t value, long most);
    // What is waited for gets on, and is worth waiting for as long again; in all kMaxRenewed times as long.
    void renew();

  private:
    static constexpr std::uint64_t kMaxRenewed = 20;
    void leave_out_oversleep(std::uint64_t before, long asked);
    std::uint64_t patience_, start_, end_;  // nanoseconds
};

// Locks one byte for whoever has this description of the file open; where the kernel or a sandbox knows only locks of
// processes, for this process. LockKind::none: somebody else has it locked (EAGAIN), or errno says why not.
LockKind lock_byte(int file, std::uint64_t byte);
// The same with a lock of the process, whatever the kernel knows.
bool lock_byte_for_process(int file, std::uint64_t byte);
void unlock_byte(int file, std::uint64_t byte, LockKind kind);
// Waits until the deadline: its owner may have been stopped.
LockKind lock_byte_until(int file, std::uint64_t byte, Deadline deadline);
// The same of byte 0, whose holder says in the header who it is, and wakes one of those that wait when it lets go of it
// by unlock_header. As long as one holder comes after the other, each is waited for.
LockKind lock_header_until(int file, Header& header, Deadline deadline);
void unlock_header(int file, Header& header, LockKind kind);
// Whether an error of locking means that somebody else has the lock.
bool means_held(int error);

// Whether somebody may write under this byte's lock. `*unknown`: it can't be told.
bool is_locked(int file, std::uint64_t byte, bool* unknown);
// The process that has byte 0 of `file` locked, in this pid namespace; 0 where that can't be told.
std::int32_t locker_of(int file, const Header* header);

inline std::uint64_t byte_of_member(std::uint32_t number) { return 1 + number; }
// Tickets are counted behind the members.
inline std::uint32_t place_of_ticket(std::uint32_t index) { return kMembers + index; }

// A member's or a ticket's byte, locked for as long as this image of the process lives: by a description of the file
// that nothing but a mapping keeps open, so that neither a descriptor that is closed gives it up nor a forked child
// keeps it.
class PlaceLock {
  public:
    // `file` is open for writing. False: somebody has the byte locked, or errno says why not.
    bool take(int file, std::uint32_t number);
    // The same with a lock that an exec keeps, as long as `file` is kept.
    bool take_over_exec(int file, std::uint32_t number);
    void give_up(int file, std::uint32_t number);
    // In a forked child, which has neither mapping nor lock.
    void forget() { *this = {}; }
    LockKind kind() const { return kind_; }

  private:
    LockKind kind_ = LockKind::none;
    void* anchor_ = nullptr;
};

// The lowest descriptor that one of ours may have: 0 to 2 are streams of the host, and scripts choose those up to 9.
inline constexpr int kMinDescriptor = 10;
// The same file under a number that the host leaves alone. `file` is closed.
int out_of_the_way(int file, bool keep_over_exec);

}  // namespace cuslice::ledger
