// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/layout.h"

// Locks on files, and how long a lock of the ledger's is waited for.
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
    bool pause_for(const int32_t& word, int32_t value, long most);
    // Starts the time anew, as the awaited work gets on; in all no more than kMaxRenewed times as long.
    void renew();

  private:
    static constexpr uint64_t kMaxRenewed = 20;
    void leave_out_oversleep(uint64_t before, long asked);
    uint64_t patience_, start_, end_;  // nanoseconds
};

// Locks one byte for whoever has this description of the file open; where the kernel or a sandbox knows only locks of
// processes, for this process. LockKind::none: somebody else has it locked (EAGAIN), or errno says why not.
LockKind lock_byte(int file, uint64_t byte);
// The same with a lock of the process, whatever the kernel knows.
bool lock_byte_for_process(int file, uint64_t byte);
void unlock_byte(int file, uint64_t byte, LockKind kind);
// True if an error of locking means that somebody else has the lock.
bool means_held(int error);

// True if somebody has locked this byte for writing. `*unknown`: it can't be told.
bool is_locked(int file, uint64_t byte, bool* unknown);

}  // namespace cuslice::ledger
