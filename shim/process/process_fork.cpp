// What a fork, and a longjmp out of a hook, do to our locks.
#include "policy/allocator/thread_cache.h"
#include "shim/process/process.h"
#include "virtual_gpu/split/dispatch.h"

namespace cuslice {

namespace {

// How many GPUs' locks this thread holds while it forks: another thread may just be opening them.
constinit thread_local int forking_gpus = 0;

}  // namespace

// No lock of ours may be held in a child by a thread that it does not have.
void Process::before_fork() {
    const int gpus = the_process.gpu_count();
    // What is held over a call of the driver is not waited for: a thread may be in there until this one does something.
    // In the child it is reset.
    the_process.caches_.lock();
    for (int i = 0; i < gpus; i++) the_process.gpu(i).pools().mutex().lock();
    if (!loading_now) the_process.mutex_.lock();
    the_process.caches_.lock_rest();
    lock_split();
    gpu_state().contexts.mutex().lock();
    gpu_state().physical_memory.mutex().lock();
    gpu_state().graph_needs.mutex().lock();
    for (int i = 0; i < gpus; i++) the_process.gpu(i).mutex().lock();
    gpu_state().allocations.lock_all();
    forking_gpus = gpus;
}

void Process::leave_locks() {
    caches_.leave_locks();
    if (split().installed()) leave_split_locks();
    for (int i = 0; i < gpu_count(); i++) {
        gpu(i).pools().leave_locks();
        gpu(i).mutex().leave();
    }
    gpu_state().contexts.mutex().leave();
}

void Process::after_fork() {
    gpu_state().allocations.unlock_all();
    for (int i = forking_gpus; i-- > 0;) the_process.gpu(i).mutex().unlock();
    gpu_state().graph_needs.mutex().unlock();
    gpu_state().physical_memory.mutex().unlock();
    gpu_state().contexts.mutex().unlock();
    unlock_split();
    the_process.caches_.unlock_rest();
    if (!loading_now) the_process.mutex_.unlock();
    for (int i = forking_gpus; i-- > 0;) the_process.gpu(i).pools().mutex().unlock();
    the_process.caches_.unlock();
}

// What is shared is the parent's: its places and its locks are not the child's.
void Process::after_fork_in_child() {
    after_fork();
    // The driver answers no call in a child. What it says is what the program is to hear, with nothing counted: a lock
    // of NVML's may be held by a thread that the child doesn't have.
    the_process.ways_.store(0, std::memory_order_relaxed);
    the_process.limits_.store(false, std::memory_order_relaxed);
    the_process.recording_.forget();
    thread_caches = nullptr;
    the_process.caches_.ipc_blocks().forget();
    the_process.caches_.forget();
    for (int i = forking_gpus; i-- > 0;) {
        the_process.gpu(i).pools().forget();
        the_process.gpu(i).budget().unshare();
        the_process.gpu(i).forget_sharing();
    }
}

}  // namespace cuslice
