// SPDX-License-Identifier: Apache-2.0
// The kernel as it is for a program that it gives no memory.
#pragma once

namespace refusals {

/// While it lives, nothing in this thread can map memory: not the program, and no library of it.
class NoHostMemory {
  public:
    NoHostMemory();
    ~NoHostMemory();
    NoHostMemory(const NoHostMemory&) = delete;
    NoHostMemory& operator=(const NoHostMemory&) = delete;
};

}  // namespace refusals
