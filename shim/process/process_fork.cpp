// SPDX-License-Identifier: Apache-2.0
// Keeps our locks, and the state that they guard, sound across a fork and a longjmp out of a hook.
#include "policy/allocator/thread_cache.h"
#include "policy/base/cancellation.h"
#include "shim/process/process.h"
#include "shim/process/watchers.h"

namespace cuslice {

namespace {

// The forking thread's, which has every lock meanwhile.
constinit CancellationDisabler uncancelled;

CancellationDisabler give_back_locks() {
    const CancellationDisabler own = uncancelled;
    the_lock_list.give_back();
    return own;
}

}  // namespace

// No lock of ours may be held in a child by a thread that it does not have.
void Process::before_fork() {
    CancellationDisabler own;
    own.begin();
    the_lock_list.take();
    uncancelled = own;
}

void Process::after_fork() { give_back_locks().end(); }

// Shared state stays the parent's: its places in ledgers are not the child's.
void Process::after_fork_in_child() {
    CancellationDisabler own = give_back_locks();
    the_lock_list.free_others();
    // The driver answers no call in a child. What it says is what the program is to hear, with nothing counted: a lock
    // of NVML's may be held by a thread that the child doesn't have.
    the_process.remove_features(kCaching | kRecording | kPlusContext | kSharingTime);
    the_process.limits_.store(false, std::memory_order_relaxed);
    the_process.recording_.forget();
    ContextAllocator::forget_thread();
    the_process.caches_.forget();
    the_process.turns_.forget();
    gpu_state().visits.forget_all();
    for (int i = the_process.gpu_count(); i-- > 0;) {
        the_process.gpu(i).pools().forget();
        the_process.gpu(i).budget().unshare();
        the_process.gpu(i).forget_sharing();
    }
    forget_watchers();
    own.end();
}

void Process::leave() {
    the_lock_list.leave();
    gpu_state().visits.forget_own();
    caches_.leave();
    for (VirtualGpu& gpu : gpus())
        gpu.pools().leave();
}

}  // namespace cuslice
