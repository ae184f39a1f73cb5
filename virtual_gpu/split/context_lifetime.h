// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/cancellation.h"
#include "virtual_gpu/split/virtual_context.h"

namespace cuslice {

// Over which contexts live: each that does holds its real one once. Held over calls of the driver, so that none begins
// while the last one ends.
Mutex& lifetimes_mutex();
// Calls `what` with it, for callers that may have locks of their own. Does nothing while another thread has it.
template <typename Do>
void while_none_ends(Do what) {
    const DisableCancellation held_back;
    if (!lifetimes_mutex().try_lock())
        return;
    what();
    lifetimes_mutex().unlock();
}

// NVIDIA's runtime may make its primary context by a door of its own, and uses it again after a reset. So a primary
// context begins by its use, too.
//
// The one that this thread uses: `real` is current, in which a partition has `known`, which doesn't live (null: no
// partition's). Null where `real` is no primary context, or the program has ended it. Thread-safe.
VirtualContext* begin_by_use(VirtualContext* known, CUcontext real);
// The first partition's, where this thread uses the physical GPU's without one, `here`, or no partition does. With
// lifetimes_mutex() locked.
void begin_if_used_unseen(CUdevice physical, const VirtualContexts::Resolved& here);

// The end of a context whose real one lives on: waits for its work, and destroys what was made in it. Memory is left
// to whoever counts it (LeftMemory).
void end_what_was_made(const VirtualContext& context);

// With the lock held. The context's use of its real one isn't given up yet: what is allocated in it is still to be
// freed.
void leave_memory(const VirtualContext& context, CUdevice physical);

// True while a thread is about to free memory that a context has left on the GPU: the real one may be alive for that
// alone.
bool memory_is_left(CUdevice physical);

// True if the real context outlives this one, as others of the GPU live, or memory is left in it: then what is this
// one's own has to be ended by itself. With lifetimes_mutex() locked.
bool real_lives_on(const VirtualContext& context);
// Gives up one use of a physical GPU's context. With lifetimes_mutex() locked.
CUresult give_up_real(CUdevice physical);

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
