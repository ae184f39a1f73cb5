// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks whether the owner of a slot still lives.

#include <sys/types.h>

#include <cstdint>

#include "fake/books/layout.h"

namespace cuslice::fake {

/// Start time of a process in clock ticks since boot, 0 if there is none (or it is not visible here).
uint64_t process_start_time(int pid);

/// The parent of a process, 0 if that can't be seen.
int parent_process(int pid);

/// True where a process stands still because of a signal. False if that can't be seen.
bool is_stopped(int pid);

enum class Life { Lives, Ended, Unknown };

/// Marks of a process by which others know it, written by itself.
struct OwnerIdentity {
    int pid = 0;
    uint64_t start_time = 0;
    uint64_t mapped_at = 0;  // where it maps the file
};

/// Checks whether the owner of a byte of a lock file lives and still has the file mapped that belongs to it. The lock
/// nearly always settles it. A living owner can lose the lock (a program that closes every descriptor), so /proc
/// decides where the lock is free: the owner lives if its start time is the same and the file is still mapped at the
/// same address, unlike in a zombie or an exec'ed image. Unknown if the lock is free and /proc can't be read: there is
/// none here, or no descriptor is left for it. `lock_file` is a descriptor of the lock file, `inode` the mapped file's.
///
/// `pid_here`, if not null, gets the owner's pid in this process's pid namespace, 0 if it has none there. The kernel
/// reports the pid of a lock's holder.
Life life_of_owner(const OwnerIdentity& owner, off_t byte, int lock_file, uint64_t inode, int* pid_here = nullptr);
/// The same of a slot of the books.
Life life_of_owner(const Slot& slot, unsigned number, int lock_file, uint64_t inode, int* pid_here = nullptr);

}  // namespace cuslice::fake
