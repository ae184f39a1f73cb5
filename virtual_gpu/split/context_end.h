// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/split/virtual_context.h"

namespace cuslice {

// Over which contexts live: each that does holds its real one once. Held over calls of the driver, so that none begins
// while the last one ends.
Mutex& lifetimes_mutex();

// The end of a context whose real one lives on: waits for its work, and destroys what was made in it. Memory is left
// to whoever counts it (LeftMemory).
void end_what_was_made(const VirtualContext& context);

// With the lock held. The context's use of its real one isn't given up yet: what is allocated in it is still to be
// freed.
void leave_memory(const VirtualContext& context, CUdevice physical);

// Memory left behind by this thread's last call that ended a context. The real context is current while this lives,
// and then given up. Made after every such call, whether there is anything to free or not.
class LeftMemory {
  public:
    LeftMemory();
    ~LeftMemory();
    LeftMemory(const LeftMemory&) = delete;
    LeftMemory& operator=(const LeftMemory&) = delete;

    // False if the memory has gone with the real context, or there is none of ours.
    explicit operator bool() const { return pushed_; }

  private:
    CUdevice physical_ = -1;
    bool pushed_ = false;
};

}  // namespace cuslice
