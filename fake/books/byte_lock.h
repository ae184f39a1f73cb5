// SPDX-License-Identifier: Apache-2.0
#pragma once
// Locks on bytes of a file.

#include <fcntl.h>

namespace cuslice::fake {

/// A lock of some bytes, as fcntl takes it; 0 for all that follow.
inline struct flock lock_of(short type, off_t byte, off_t bytes = 1) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = bytes;
    return lock;
}

/// fcntl(F_SETLK or F_SETLKW) on one byte.
inline int set_lock(int file, off_t byte, short type, int command) {
    struct flock lock = lock_of(type, byte);
    return fcntl(file, command, &lock);
}

}  // namespace cuslice::fake
