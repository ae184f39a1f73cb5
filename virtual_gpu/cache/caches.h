// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "policy/base/mutex.h"
#include "virtual_gpu/cache/context_cache.h"
#include "virtual_gpu/cache/exported_sizes.h"
#include "virtual_gpu/cache/ipc_blocks.h"
#include "virtual_gpu/cache/publisher.h"
#include "virtual_gpu/cache/threads.h"
#include "virtual_gpu/gpu/memory_reclaimer.h"

namespace cuslice {

// The caching allocators of this process, one for each context of a GPU whose mode is not `direct`. Thread-safe.
class Caches final : public MemoryReclaimer, private CacheCommons {
  public:
    constexpr Caches() {
        tell_changed = [](CacheCommons& self, VirtualGpu& gpu) { static_cast<Caches&>(self).changed(gpu); };
        thread_began = [](CacheCommons& self) {
            at_thread_end([](void* caches) { static_cast<Caches*>(caches)->thread_ends(); },
                          static_cast<Caches*>(&self));
        };
    }

    // A context's; null if its GPU has none, or there is no memory for one.
    ContextAllocator* of(VirtualGpu& gpu, Contexts::Id id);

    // A context is there: takes the GPU's slice now where that is the mode. False if it could not have all of it;
    // `missing` says how many bytes less.
    bool prepare(VirtualGpu& gpu, Contexts::Id id, uint64_t* missing);

    // Within a ContextEnd.
    void context_ended(CUcontext context);

    uint64_t trim(VirtualGpu& gpu, uint64_t bytes, const ContextCache* except = nullptr) override;
    void top_up(VirtualGpu& gpu) override;
    uint64_t unused(const VirtualGpu& gpu) const override;

    // The context that a block found in one of these is of.
    Contexts::Id context_of(const ContextAllocator::Found& block) const;
    // Others than this process may hold such a block from now on. False if there is no memory to note it in.
    bool exported(const ContextAllocator::Found& block);
    // True if an allocation should come from the driver rather than from a cache: other processes may come to hold
    // it, and there is room for it beside what the cache has in use. False for a preallocated slice, all of which is
    // the cache's.
    bool better_direct(VirtualGpu& gpu, uint64_t bytes) {
        return exported_sizes_.has(bytes) && room_beside(gpu, bytes);
    }

    // Contents of this GPU's caches, and the work done by them and by those of contexts that have ended. `open`: the
    // number of caches that hold anything now.
    Statistics statistics(const VirtualGpu& gpu, unsigned* open = nullptr) const;
    // They have changed.
    void changed(VirtualGpu& gpu);
    Publisher& publisher() { return publisher_; }

    ContextAllocator::Map& map() { return CacheCommons::map; }
    constexpr Quiescence& work() { return quiescence; }
    CaptureTracker& captures() { return quiescence.captures; }
    Fences& fences() { return quiescence.fences; }
    Reach& reach() { return quiescence.reach; }
    BlockAttributes& block_attributes() { return CacheCommons::attributes; }
    IpcBlocks& ipc_blocks() { return ipc_blocks_; }

    // Calls f(ContextCache&) for each that is open. Its context may end meanwhile, but it isn't another one's before f
    // is through with it.
    template <typename F>
    void each(F f) const {
        for (unsigned i = 0, n = count_.load(std::memory_order_acquire); i < n; i++) {
            ContextCache& cache = *caches_[i];
            cache.visitors.fetch_add(1, std::memory_order_seq_cst);
            if (cache.allocator.is_open())
                f(cache);
            cache.visitors.fetch_sub(1, std::memory_order_release);
        }
    }

    // Cleans up after this thread has left a call by a longjmp. It holds no lock any more.
    void leave();
    // In a forked child, which has no caches.
    void forget();

  private:
    static constexpr unsigned kMax = 256;
    Statistics statistics_of_open(const VirtualGpu& gpu, unsigned* open) const;
    bool room_beside(VirtualGpu& gpu, uint64_t bytes);
    void watch_idle(const VirtualGpu& gpu);
    uint64_t look_after() const;
    void release_idle();
    void thread_ends();

    IpcBlocks ipc_blocks_;
    ExportedSizes exported_sizes_;
    Mutex mutex_{LockRank::caches};  // over the making and ending of caches
    std::atomic<unsigned> count_{0};
    ContextCache* caches_[kMax] = {};
    mutable Mutex ended_mutex_{LockRank::ended_statistics};  // over ended_
    Statistics ended_[stats::kGpus] CUSLICE_GUARDED_BY(ended_mutex_);
    std::atomic<uint64_t> ends_{0};  // of contexts whose statistics are in ended_
    Publisher publisher_;
    std::atomic<bool> idle_thread_{false};
};

}  // namespace cuslice
