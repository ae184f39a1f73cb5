// SPDX-License-Identifier: Apache-2.0
#pragma once
// Locks on bytes of a books file's lock file.

#include <fcntl.h>

namespace cuslice::fake {

/// fcntl(F_SETLK or F_SETLKW) on one byte.
inline int set_lock(int file, off_t byte, short type, int command) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return fcntl(file, command, &lock);
}

/// Byte 0 of the lock file, held for a few microseconds. Whoever has it collides with nobody; who doesn't get it goes
/// on without: at once where its holder is stopped, as by a debugger or Ctrl-Z, else after 200 ms. So what is done
/// under it has to be right without it, step by step.
class FileLock {
  public:
    explicit FileLock(int file);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int file_;
    bool held_ = false;
};

}  // namespace cuslice::fake
