#pragma once
// Byte 0 of a books file's lock file: whoever holds it may change whose slots and shared allocations are.

#include <fcntl.h>

#include <cerrno>

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

/// Byte 0 of the lock file, held for a few microseconds.
class FileLock {
  public:
    explicit FileLock(int file) : file_(file) { set(F_WRLCK); }
    ~FileLock() { set(F_UNLCK); }
    FileLock(const FileLock&) = delete;

  private:
    void set(short type) const {
        while (set_lock(file_, 0, type, F_SETLKW) != 0 && errno == EINTR) {
        }
    }
    int file_;
};

}  // namespace cuslice::fake
