// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lock of a books file.

#include "fake/books/byte_lock.h"

namespace cuslice::fake {

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
