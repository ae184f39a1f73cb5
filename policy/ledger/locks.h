#pragma once
#include "policy/ledger/folder.h"
#include "policy/ledger/layout.h"
#include "policy/ledger/process_identity.h"

// The lock of a ledger's header, locks on files, and how long they are waited for.
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
// Whether an error of locking means that somebody else has the lock.
bool means_held(int error);

// Whether somebody may write under this byte's lock. `*unknown`: it can't be told.
bool is_locked(int file, std::uint64_t byte, bool* unknown);

/// Who takes the lock of a header: this process by its presence, and where those of others are.
struct Locker {
    UserFolder where;
    std::uint64_t id = 0;  // of its presence
    LockKind kind = LockKind::none;
    ProcessIdentity process;
};
/// The lock that is held while accounts, members and tickets change hands: the number of its holder's presence in the
/// header. Only who has the file mapped for writing can take it or stand in its way; one whose holder has ended is
/// taken over. Waits until the deadline, as its holder may have been stopped; as long as one holder comes after the
/// other, each is waited for. False: errno is EAGAIN.
bool lock_header_until(Header& header, const Locker& self, Deadline deadline);
void unlock_header(Header& header, const Locker& self);
/// The process that has the lock, in this pid namespace; 0 where that can't be told.
std::int32_t locker_of(const Header& header);

// The lowest descriptor that one of ours may have: 0 to 2 are streams of the host, and scripts choose those up to 9.
inline constexpr int kMinDescriptor = 10;
// The same file under a number that the host leaves alone. `file` is closed.
int out_of_the_way(int file, bool keep_over_exec);

}  // namespace cuslice::ledger
