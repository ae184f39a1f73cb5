// A kernel that gives no memory, for test programs that are linked with --wrap=mmap.
#pragma once

#include <sys/mman.h>

#include <cerrno>

namespace cuslice::tests {

inline thread_local bool no_memory = false;

/// While it lives, this thread can map nothing.
class NoMemory {
  public:
    NoMemory() { no_memory = true; }
    ~NoMemory() { no_memory = false; }
    NoMemory(const NoMemory&) = delete;
    NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace cuslice::tests
