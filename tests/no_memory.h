// SPDX-License-Identifier: Apache-2.0
// A kernel that gives no memory, for test programs that are linked with --wrap for mmap and for take_table_memory,
// which may have memory left.
#pragma once

#include <sys/mman.h>

#include <cerrno>

namespace cuslice::tests {

inline thread_local bool no_mappings = false, no_tables = false;

/// While it lives, this thread can map nothing, and has what was mapped before.
class NoMappings {
  public:
    NoMappings() { no_mappings = true; }
    ~NoMappings() { no_mappings = false; }
    NoMappings(const NoMappings&) = delete;
    NoMappings& operator=(const NoMappings&) = delete;
};

/// While it lives, this thread can map nothing, and nothing is left of what was mapped for tables.
class NoMemory {
  public:
    NoMemory() { no_tables = true; }
    ~NoMemory() { no_tables = false; }
    NoMemory(const NoMemory&) = delete;
    NoMemory& operator=(const NoMemory&) = delete;

  private:
    NoMappings mappings_;
};

}  // namespace cuslice::tests
