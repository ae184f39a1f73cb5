#include "virtual_gpu/cache/caches.h"

#include <ctime>
#include <new>

#include "policy/table_memory.h"
#include "policy/uncancelled.h"
#include "virtual_gpu/cache/current_context.h"
#include "virtual_gpu/cache/idle_thread.h"
#include "virtual_gpu/cache/relaxed_captures.h"
#include "virtual_gpu/process.h"

namespace cuslice {

Contexts& Caches::contexts() { return process().contexts(); }

CachingAllocator* Caches::of(VirtualGpu& gpu, Contexts::Id id) {
    const CUcontext context = gpu.caches() ? contexts().handle_of(id) : nullptr;
    if (!context) return nullptr;
    const Uncancelled uncancelled;
    LockGuard lock(mutex_);
    ContextCache* closed = nullptr;
    for (unsigned i = 0; i < count_.load(std::memory_order_relaxed); i++) {
        ContextCache* cache = caches_[i];
        if (!cache->allocator.is_open() && !cache->visitors.load(std::memory_order_seq_cst)) closed = cache;
        if (cache->allocator.is_open() && cache->context == context) return &cache->allocator;
    }
    const unsigned count = count_.load(std::memory_order_relaxed);
    if (!closed && count < kMost) {
        // Never given back: a thread may hold on to it longer than its context lives.
        constexpr std::size_t kBytes = 32 << 10;
        static_assert(sizeof(ContextCache) <= kBytes);
        void* memory = take_table_memory(kBytes);
        if (memory) {
            closed = new (memory) ContextCache;
            caches_[count] = closed;
            count_.store(count + 1, std::memory_order_release);
        }
    }
    if (!closed) return nullptr;
    closed->open(*this, gpu, context, id);
    publisher_.open(process().sharing().folder.c_str());
    watch_idle(gpu);
    return &closed->allocator;
}

bool Caches::prepare(VirtualGpu& gpu, Contexts::Id id, std::uint64_t* missing) {
    CachingAllocator* allocator = of(gpu, id);
    if (!allocator) return true;
    Denied denied;
    const Uncancelled uncancelled;
    const RelaxedCaptures relaxed;
    const bool all = allocator->top_up(&denied);
    *missing = all ? 0 : gpu.room();
    changed(gpu);
    return all;
}

void Caches::context_ended(CUcontext context) {
    captures_.context_ended(context);
    fences_.context_ended(context);
    VirtualGpu* gpu = nullptr;
    {
        LockGuard lock(mutex_);
        each([&](ContextCache& cache) {
            if (cache.context != context) return;
            gpu = cache.gpu;
            // Up to now its peaks were among those of all the contexts that there are.
            const Statistics until = statistics(*gpu), done = cache.allocator.close();
            notes_.context_ended(cache.id);
            LockGuard ended(ended_mutex_);
            ended_[gpu->ordinal()].add(done);
            ended_[gpu->ordinal()].take_peaks(until);
        });
    }
    if (gpu) changed(*gpu);
}

Statistics Caches::statistics(const VirtualGpu& gpu, unsigned* open) {
    Statistics sum;
    unsigned count = 0;
    each([&](ContextCache& cache) {
        if (cache.gpu != &gpu) return;
        sum.add(cache.allocator.statistics());
        count++;
    });
    if (open) *open = count;
    LockGuard lock(ended_mutex_);
    const Statistics& ended = ended_[gpu.ordinal()];
    Statistics all = ended;
    all.add(sum);
    all.take_peaks(sum);
    all.raise_peaks(ended);
    return all;
}

Contexts::Id Caches::context_of(const CachingAllocator::Found& block) const {
    Contexts::Id id = 0;
    each([&](const ContextCache& cache) {
        if (&cache.allocator == block.owner) id = cache.id;
    });
    return id;
}

bool Caches::exported(const CachingAllocator::Found& block) {
    if (!notes_.exported(map_, block.address, context_of(block))) return false;
    exported_sizes_.add(block.requested);
    return true;
}

bool Caches::room_beside(VirtualGpu& gpu, std::uint64_t bytes) {
    if (gpu.slice().allocator == AllocatorMode::prealloc) return false;
    if (gpu.room() >= Budget::charged(bytes)) return true;
    const Uncancelled uncancelled;
    return trim(gpu, bytes) && gpu.room() >= Budget::charged(bytes);
}

std::uint64_t Caches::trim(VirtualGpu& gpu, std::uint64_t bytes, const ContextCache* except) {
    std::uint64_t given = 0;
    const RelaxedCaptures relaxed;
    each([&](ContextCache& cache) {
        if (cache.gpu == &gpu && &cache != except && given < bytes) given += cache.allocator.trim(bytes - given);
    });
    return given;
}

void Caches::top_up(VirtualGpu& gpu) {
    if (captures_.any_for_sure()) return;
    Denied denied;
    const RelaxedCaptures relaxed;
    each([&](ContextCache& cache) {
        if (cache.gpu == &gpu) cache.allocator.top_up(&denied);
    });
}

std::uint64_t Caches::unused(const VirtualGpu& gpu) const {
    std::uint64_t bytes = 0;
    each([&](const ContextCache& cache) {
        if (cache.gpu == &gpu) bytes += cache.allocator.unused();
    });
    return bytes;
}

int Caches::in_context(void*) {
    CUcontext current = nullptr;
    const CUresult asked = CUSLICE_REAL(cuCtxGetCurrent)(&current);
    return asked != CUDA_SUCCESS || current ? asked : CUDA_ERROR_INVALID_CONTEXT;
}

Fence Caches::fence(CUcontext context, CUdeviceptr address) {
    if (captures_.any()) return 0;
    CUcontext all[Fences::kMostContexts];
    const std::size_t count = reach_.list(contexts(), context, address, all, std::size(all));
    return count <= std::size(all) ? fences_.make(all, count) : 0;
}

namespace {

CUresult wait_for_work_of(CUcontext context) {
    const Uncancelled uncancelled;
    if (driver_slot(Function::cuCtxSynchronize_v2)) {
        const NamedContext during(context);
        return during ? CUSLICE_REAL(cuCtxSynchronize_v2)(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    const CurrentContext during(context, CurrentContext::Of::known);
    return during ? CUSLICE_REAL(cuCtxSynchronize)() : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

// A free of the program's is parked where it can't be waited for, and later the driver can be asked again.
int Caches::quiesce(CUcontext context, CUdeviceptr address, bool for_program) {
    if (for_program ? captures_.any() : captures_.any_for_sure()) return Backing::kNotNow;
    CUcontext all[Reach::kMostContexts];
    const std::size_t count = reach_.list(contexts(), context, address, all, std::size(all));
    if (count > std::size(all)) return Backing::kNotNow;
    for (std::size_t i = 0; i < count; i++) {
        const CUresult result = wait_for_work_of(all[i]);
        // One that has ended meanwhile has waited for its own work.
        const bool ended = result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
        if (result != CUDA_SUCCESS && !ended) return result;
    }
    return 0;
}

std::uint64_t Caches::now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// A thread that ends is a visitor of all of them: none becomes another context's meanwhile.
void Caches::thread_began() {
    at_thread_end([] {
        const Caches& set = process().caches();
        const unsigned count = set.count_.load(std::memory_order_acquire);
        for (unsigned i = 0; i < count; i++) set.caches_[i]->visitors.fetch_add(1, std::memory_order_seq_cst);
        CachingAllocator::thread_ends();
        for (unsigned i = 0; i < count; i++) set.caches_[i]->visitors.fetch_sub(1, std::memory_order_release);
    });
}

// The only feature that needs a thread of ours, and only where it is asked for.
void Caches::watch_idle(const VirtualGpu& gpu) {
    if (gpu.slice().idle_release && !idle_thread_.exchange(true)) start_idle_thread();
}

void Caches::leave_locks() {
    visits_.forget_own();
    for (Mutex* mutex : {&fences_.mutex(), &captures_.mutex(), &mutex_}) mutex->leave();
    for (unsigned i = 0, n = count_.load(std::memory_order_acquire); i < n; i++) caches_[i]->allocator.leave_locks();
}

void Caches::lock_rest() {
    notes_.lock_all();  // held while a block is looked up
    each([](ContextCache& cache) { cache.allocator.lock(); });
    captures_.mutex().lock();
    fences_.mutex().lock();
    visits_.mutex().lock();
}

void Caches::unlock_rest() {
    visits_.mutex().unlock();
    fences_.mutex().unlock();
    captures_.mutex().unlock();
    each([](ContextCache& cache) { cache.allocator.unlock(); });
    notes_.unlock_all();
}

void Caches::forget() {
    publisher_.forget();
    {
        const LockGuard lock(visits_.mutex());
        visits_.forget_all();
    }
    each([](ContextCache& cache) { cache.allocator.forget_growing(); });
}

}  // namespace cuslice
