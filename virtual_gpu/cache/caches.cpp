// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/caches.h"

#include <algorithm>
#include <ctime>
#include <new>

#include "policy/base/cancellation.h"
#include "policy/base/kernel_clock.h"
#include "policy/base/table_memory.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/relaxed_captures.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

namespace {

void sleep_for(uint64_t milliseconds) {
    timespec time{static_cast<std::time_t>(milliseconds / 1000), static_cast<long>(milliseconds % 1000 * 1'000'000)};
    while (nanosleep(&time, &time) != 0) {
    }
}

}  // namespace

ContextAllocator* Caches::of(VirtualGpu& gpu, Contexts::Id id) {
    const CUcontext context = gpu.caches() ? gpu_state().contexts.handle_of(id) : nullptr;
    if (!context)
        return nullptr;
    const DisableCancellation uncancelled;
    LockGuard lock(mutex_);
    ContextCache* closed = nullptr;
    for (unsigned i = 0; i < count_.load(std::memory_order_relaxed); i++) {
        ContextCache* cache = caches_[i];
        if (!cache->allocator.is_open() && !cache->visitors.load(std::memory_order_seq_cst))
            closed = cache;
        if (cache->allocator.is_open() && cache->context == context)
            return &cache->allocator;
    }
    const unsigned count = count_.load(std::memory_order_relaxed);
    if (!closed && count < kMax) {
        // Never given back: a thread may hold on to it longer than its context lives.
        constexpr size_t kBytes = 32 << 10;
        static_assert(sizeof(ContextCache) <= kBytes);
        void* memory = take_table_memory(kBytes);
        if (memory) {
            closed = new (memory) ContextCache;
            caches_[count] = closed;
            count_.store(count + 1, std::memory_order_release);
        }
    }
    if (!closed)
        return nullptr;
    closed->open(*this, gpu, context, id);
    publisher_.open(gpu_state().sharing.folder.c_str());
    watch_idle(gpu);
    return &closed->allocator;
}

bool Caches::prepare(VirtualGpu& gpu, Contexts::Id id, uint64_t* missing) {
    ContextAllocator* allocator = of(gpu, id);
    if (!allocator)
        return true;
    AllocationError denied;
    const DisableCancellation uncancelled;
    const RelaxedCaptures relaxed;
    allocator->top_up(&denied);
    // A segment takes a granule at least, so less room than that doesn't count as missing.
    const bool all = denied.by == AllocationError::By::nobody || gpu.room() < GrowthPolicy::kGranule;
    *missing = all ? 0 : gpu.room();
    changed(gpu);
    return all;
}

void Caches::context_ended(CUcontext context) {
    quiescence.captures.context_ended(context);
    quiescence.fences.context_ended(context);
    VirtualGpu* gpu = nullptr;
    {
        LockGuard lock(mutex_);
        each([&](ContextCache& cache) {
            if (cache.context != context)
                return;
            gpu = cache.gpu;
            // Up to now its peaks were among those of all the contexts that there are.
            const Statistics until = statistics(*gpu), done = cache.allocator.close();
            block_attributes().context_ended(cache.id);
            LockGuard ended(ended_mutex_);
            ended_[gpu->ordinal()].add(done);
            ended_[gpu->ordinal()].take_peaks(until);
            ends_.fetch_add(1, std::memory_order_release);
        });
    }
    if (gpu)
        changed(*gpu);
}

Statistics Caches::statistics_of_open(const VirtualGpu& gpu, unsigned* open) const {
    Statistics sum;
    unsigned count = 0;
    each([&](ContextCache& cache) {
        if (cache.gpu != &gpu)
            return;
        if (count++)
            sum.add(cache.allocator.statistics());
        else
            sum = cache.allocator.statistics();
    });
    if (open)
        *open = count;
    return sum;
}

Statistics Caches::statistics(const VirtualGpu& gpu, unsigned* open) const {
    for (;;) {
        const uint64_t ends = ends_.load(std::memory_order_acquire);
        const Statistics sum = statistics_of_open(gpu, open);
        if (!ends)
            return sum;
        LockGuard lock(ended_mutex_);
        // A cache that was closed meanwhile may be in both.
        if (ends != ends_.load(std::memory_order_relaxed))
            continue;
        const Statistics& ended = ended_[gpu.ordinal()];
        Statistics all = ended;
        all.add(sum);
        all.take_peaks(sum);
        all.raise_peaks(ended);
        return all;
    }
}

Contexts::Id Caches::context_of(const ContextAllocator::Found& block) const {
    Contexts::Id id = 0;
    each([&](const ContextCache& cache) {
        if (&cache.allocator == block.owner)
            id = cache.id;
    });
    return id;
}

bool Caches::exported(const ContextAllocator::Found& block) {
    if (!block_attributes().exported(map(), block.address, context_of(block)))
        return false;
    exported_sizes_.add(block.requested);
    return true;
}

bool Caches::room_beside(VirtualGpu& gpu, uint64_t bytes) {
    if (gpu.slice().allocator == AllocatorMode::prealloc)
        return false;
    if (gpu.room() >= Budget::charged(bytes))
        return true;
    const DisableCancellation uncancelled;
    return trim(gpu, bytes) && gpu.room() >= Budget::charged(bytes);
}

void Caches::changed(VirtualGpu& gpu) {
    const auto read = [](const void* self, const VirtualGpu& of, unsigned* contexts) {
        return static_cast<const Caches*>(self)->statistics(of, contexts);
    };
    publisher_.changed({this, read}, gpu);
}

uint64_t Caches::trim(VirtualGpu& gpu, uint64_t bytes, const ContextCache* except) {
    uint64_t given = 0;
    const RelaxedCaptures relaxed;
    each([&](ContextCache& cache) {
        if (cache.gpu == &gpu && &cache != except && given < bytes)
            given += cache.allocator.trim(bytes - given);
    });
    return given;
}

void Caches::top_up(VirtualGpu& gpu) {
    if (quiescence.captures.any_for_sure())
        return;
    AllocationError denied;
    const RelaxedCaptures relaxed;
    each([&](ContextCache& cache) {
        if (cache.gpu == &gpu)
            cache.allocator.top_up(&denied);
    });
}

uint64_t Caches::unused(const VirtualGpu& gpu) const {
    uint64_t bytes = 0;
    each([&](const ContextCache& cache) {
        if (cache.gpu == &gpu)
            bytes += cache.allocator.unused();
    });
    return bytes;
}

// A thread that ends is a visitor of all of them: none becomes another context's meanwhile.
void Caches::thread_ends() {
    const unsigned count = count_.load(std::memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        caches_[i]->visitors.fetch_add(1, std::memory_order_seq_cst);
    ContextAllocator::thread_ends();
    quiescence.captures.thread_ends();
    quiescence.fences.thread_ends();
    for (unsigned i = 0; i < count; i++)
        caches_[i]->visitors.fetch_sub(1, std::memory_order_release);
}

// Four looks in the time that memory may lie idle; and often enough for another process that waits for some of it.
uint64_t Caches::look_after() const {
    uint64_t shortest = ~0ull;
    each([&](const ContextCache& cache) {
        if (const uint64_t idle = cache.gpu->slice().idle_release)
            shortest = std::min(shortest, idle);
    });
    return std::clamp<uint64_t>(shortest / 4, 10, 100);
}

// The idle thread: gives back what a GPU's caches have not used for its `idle-release`, also while the program sleeps.
void Caches::release_idle() {
    const RelaxedCaptures relaxed;
    for (;;) {
        sleep_for(look_after());
        const bool capturing = quiescence.captures.any_for_sure();
        each([capturing](ContextCache& cache) {
            const uint64_t idle = cache.gpu->slice().idle_release * 1'000'000, now = coarse_clock();
            if (!idle || capturing)
                return;
            if (cache.gpu->siblings().trim_requested())
                return cache.allocator.help_out();
            // Threads keep their own blocks as long as any operation goes on.
            const uint64_t operations = cache.allocator.operations();
            const bool asleep = operations == cache.operations_seen;
            cache.operations_seen = operations;
            cache.allocator.release_idle(now, idle, asleep);
        });
    }
}

// The only feature that needs a thread of ours, and only where it is asked for.
void Caches::watch_idle(const VirtualGpu& gpu) {
    if (!gpu.slice().idle_release || idle_thread_.exchange(true))
        return;
    const auto run = [](void* self) -> void* {
        static_cast<Caches*>(self)->release_idle();
        return nullptr;
    };
    start_background_thread(run, this);
}

void Caches::leave() {
    quiescence.captures.forget_own();
    for (unsigned i = 0, n = count_.load(std::memory_order_acquire); i < n; i++)
        caches_[i]->allocator.leave();
}

void Caches::forget() {
    publisher_.forget();
    ipc_blocks_.forget();
    quiescence.captures.forget_all();
}

}  // namespace cuslice
