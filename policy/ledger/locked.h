#pragma once
// The inside of Ledger: its lock.
#include <errno.h>

#include "policy/ledger/ledger.h"

namespace cuslice::ledger {

// For a lock that is held while accounts change hands, which takes microseconds; its owner may have been stopped.
inline constexpr unsigned kPatience = 500;  // milliseconds

// While it lives, no other thread and no other process moves accounts or members.
class Ledger::Locked {
  public:
    // `*why` says why it can't be had, and who has it.
    Locked(Ledger& ledger, const Deadline& deadline, Failure* why = nullptr);
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    explicit operator bool() const { return kind_ != LockKind::none; }

  private:
    Ledger& ledger_;
    LockGuard guard_;
    int saved_errno_;
    LockKind kind_ = LockKind::none;
};

// Before the request of this number is granted. With byte 0 locked.
void note_granted(Header& header, std::uint64_t order);

}  // namespace cuslice::ledger
