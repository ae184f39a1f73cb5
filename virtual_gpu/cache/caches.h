#pragma once
#include <atomic>

#include "policy/mutex.h"
#include "virtual_gpu/cache/captures.h"
#include "virtual_gpu/cache/context_cache.h"
#include "virtual_gpu/cache/exported_sizes.h"
#include "virtual_gpu/cache/fences.h"
#include "virtual_gpu/cache/ipc_blocks.h"
#include "virtual_gpu/cache/notes.h"
#include "virtual_gpu/cache/publisher.h"
#include "virtual_gpu/cache/reach.h"
#include "virtual_gpu/cache/visits.h"

namespace cuslice {

// The caching allocators of this process, one for each context of a GPU whose mode is not `direct`. Thread-safe.
class Caches {
  public:
    // A context's; null if its GPU has none, or there is no memory for one.
    CachingAllocator* of(VirtualGpu& gpu, Contexts::Id id);

    // A context is there: takes the GPU's slice now where that is the mode. False, the first time, if the driver had
    // less than the slice; `missing` says how much less.
    bool prepare(VirtualGpu& gpu, Contexts::Id id, std::uint64_t* missing);

    // Within a ContextEnd.
    void context_ended(CUcontext context);

    // Gives back at least `bytes` of what is cached on this GPU, if there is so much, but nothing of `except`. Returns
    // how much it was.
    std::uint64_t trim(VirtualGpu& gpu, std::uint64_t bytes, const ContextCache* except = nullptr);
    // Takes again what a GPU's preallocation had to give back, as far as there is room.
    void top_up(VirtualGpu& gpu);

    // Bytes on this GPU that are charged and that the program could have.
    std::uint64_t unused(const VirtualGpu& gpu) const;

    // The context that a block found in one of these is of.
    Contexts::Id context_of(const CachingAllocator::Found& block) const;
    // Others than this process may hold such a block from now on. False if there is no memory to note it in.
    bool exported(const CachingAllocator::Found& block);
    // Whether an allocation should be the driver's rather than a cache's, as others may come to hold it: and it is
    // there to be had without what the cache has in use. Not of a preallocated slice, all of which is the cache's.
    bool better_direct(VirtualGpu& gpu, std::uint64_t bytes) {
        return exported_sizes_.has(bytes) && room_beside(gpu, bytes);
    }

    // What this GPU's caches hold, and what they and those of contexts that have ended have done. `open`: how many hold
    // anything now.
    Statistics statistics(const VirtualGpu& gpu, unsigned* open = nullptr);
    // They have changed.
    void changed(VirtualGpu& gpu) { publisher_.changed(*this, gpu); }
    Publisher& publisher() { return publisher_; }

    // Waits for all work that can touch the memory of a context, unless a stream is being captured. See
    // Backing::quiesce.
    int quiesce(CUcontext context, CUdeviceptr address, bool for_program);
    static int in_context(void* = nullptr);
    // The same without waiting.
    Fence fence(CUcontext context, CUdeviceptr address);
    // See Backing::passed. Not while a stream is being captured.
    bool passed(Fence fence, bool wait) {
        return !(wait ? captures_.any_for_sure() : captures_.any()) && fences_.passed(fence, wait);
    }
    static std::uint64_t now();
    static void thread_began();

    AddressMap& map() { return map_; }
    Fences& fences() { return fences_; }
    Captures& captures() { return captures_; }
    Notes& notes() { return notes_; }
    IpcBlocks& ipc_blocks() { return ipc_blocks_; }
    Reach& reach() { return reach_; }
    Visits& visits() { return visits_; }

    // Calls f(ContextCache&) for each that is open. Its context may end meanwhile, but it isn't another one's before f
    // is through with it.
    template <typename F>
    void each(F f) const {
        for (unsigned i = 0, n = count_.load(std::memory_order_acquire); i < n; i++) {
            ContextCache& cache = *caches_[i];
            cache.visitors.fetch_add(1, std::memory_order_seq_cst);
            if (cache.allocator.is_open()) f(cache);
            cache.visitors.fetch_sub(1, std::memory_order_release);
        }
    }

    // Around fork(): no lock that is held over a call of the driver.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void lock_rest();
    void unlock_rest();
    // Of a thread that has left whatever it was doing by a longjmp.
    void leave_locks();
    // In the child, which has no caches.
    void forget();

  private:
    static constexpr unsigned kMost = 256;
    static Contexts& contexts();
    bool room_beside(VirtualGpu& gpu, std::uint64_t bytes);
    void watch_idle(const VirtualGpu& gpu);

    AddressMap map_;
    Fences fences_;
    Captures captures_;
    Notes notes_;
    IpcBlocks ipc_blocks_;
    Reach reach_;
    ExportedSizes exported_sizes_;
    Visits visits_;
    Mutex mutex_;  // over the making and ending of caches
    std::atomic<unsigned> count_{0};
    ContextCache* caches_[kMost] = {};
    Mutex ended_mutex_;  // over ended_; nothing else is taken under it
    Statistics ended_[figures::kGpus];
    Publisher publisher_;
    std::atomic<bool> idle_thread_{false};
};

}  // namespace cuslice
