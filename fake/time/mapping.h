// SPDX-License-Identifier: Apache-2.0
#pragma once
// Access to the file of time (layout.h).

#include <string>

#include "fake/time/layout.h"

namespace cuslice::fake {

class TimeMapping {
  public:
    /// Maps the file in a folder that a timekeeper has made. False: there is none, or its timekeeper has ended.
    bool open(const std::string& folder);
    /// Makes a new one in place of any, as the one who has byte 0 of the lock. False, and why.
    bool create(const std::string& folder, bool is_virtual, std::string& error);
    /// Opens the lock file alone, which is never closed: closing any descriptor of it would drop this process's locks.
    bool open_lock(const std::string& folder, std::string& error);
    void close();

    explicit operator bool() const { return file_ != nullptr; }
    TimeFile* operator->() const { return file_; }
    TimeFile& operator*() const { return *file_; }

    /// Has byte `byte` of the lock from now on, as long as this process lives; false: another one has it.
    bool lock(off_t byte) const;
    void unlock(off_t byte) const;
    bool keeper_lives() const;
    int lock_file() const { return lock_file_; }
    uint64_t inode() const { return inode_; }
    /// Takes room for a stream's ring: without it, writing there would end the program on a full file system.
    bool take_room(const TimedRing& ring) const;

  private:
    bool map(int file);

    TimeFile* file_ = nullptr;
    int file_descriptor_ = -1, lock_file_ = -1;
    uint64_t inode_ = 0;
};

/// Rings the timekeeper out of its sleep, if it sleeps.
void ring(TimeHeader& header);

}  // namespace cuslice::fake
