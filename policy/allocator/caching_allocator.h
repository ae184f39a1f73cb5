// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/allocator/address_map.h"
#include "policy/allocator/backing.h"
#include "policy/allocator/deferred_frees.h"
#include "policy/allocator/life.h"
#include "policy/allocator/segment_heap.h"
#include "policy/allocator/segment_supply.h"
#include "policy/allocator/statistics.h"
#include "policy/allocator/thread_caches.h"

namespace cuslice {

// Memory of one GPU context, kept for reuse between the program's frees and its next allocations.
//
// Up to 64 KiB, a block comes from the thread's own magazine and goes back there; magazines are filled from spans,
// spans and larger blocks are cut from segments, best fit, and segments are what the backing gives:
//
//     ThreadCaches → SegmentHeap (Spans → Segments) → SegmentSupply → Backing
//
// Of larger blocks a thread keeps the few that it has freed last, for its next allocation of the same size.
//
// A freed block may still be in use by the GPU. `strict` waits for the GPU in free(); `deferred` defers the block in a
// batch (DeferredFrees), makes one fence for all of it, and lets nobody have it before the GPU has come past. While a
// stream is captured neither can be done, and freed blocks are deferred until it can.
//
// Thread-safe, but open(). Each part has its lock, and whoever takes several takes them in this order: growing() of
// SegmentSupply, ThreadCaches, DeferredFrees, SegmentHeap. Only growing() is held while the backing is called, but for
// drop_fence(). All of the last three are held where the parts are to be seen at one moment: for statistics(), and by
// close().
template <Backing B>
class CachingAllocator : public BlockOwner {
  public:
    using Reuse = cuslice::Reuse;
    struct Options {
        Reuse reuse = Reuse::strict;
        bool preallocate = false;  // all that there is room for, always
    };

    // Where the blocks of all allocators over one kind of backing lie: an owner that is found in it is one of those.
    class Map : public AddressMap {
      public:
        using Allocator = CachingAllocator;
    };

    explicit CachingAllocator(B& backing) : backing_(backing) {}
    CachingAllocator(const CachingAllocator&) = delete;
    CachingAllocator& operator=(const CachingAllocator&) = delete;

    // Before any other use, or after close().
    void open(Map& map, const Options& options) CUSLICE_UNCHECKED;
    // Its context is gone, and with it its segments. No thread may be allocating or freeing in it; one that trims it or
    // looks at it finds nothing more to do. Returns what it has done in its time; the next one's begins with nothing.
    Statistics close();
    bool is_open() const { return life_.is_open(); }

    // bytes > 0. The address, or 0 and why: on a boundary of 512 bytes; of more than 64 KiB, of 4 KiB; from 2 MiB on,
    // of 64 KiB; from 64 MiB on, of 2 MiB.
    uint64_t allocate(uint64_t bytes, AllocationError* denied) {
        if (const uint64_t address = allocate_at_once(bytes)) [[likely]]
            return address;
        return allocate_slowly(bytes, denied);
    }
    // After allocate_at_once() has found none.
    uint64_t allocate_slowly(uint64_t bytes, AllocationError* denied) {
        return bytes > SizeClass::kMax ? allocate_large_slowly(bytes, denied) : allocate_small(bytes, denied);
    }
    // The same of what is free: a small block out of this thread's own magazine. 0: there is none.
    uint64_t allocate_at_once(uint64_t bytes) {
        return bytes <= SizeClass::kMax ? from_magazine(bytes) : allocate_large(bytes);
    }

    enum class Freed : uint8_t {
        done,
        not_ours,  // in no segment of any allocator
        invalid,   // in a segment, but no block of the program's begins there
        failed,    // the driver's error; the block is still the program's
    };
    // Frees a block of any allocator that uses this map.
    static Freed free(Map& map, uint64_t address, int* error) {
        const AddressMap::Entry entry = map.entry_at(address);
        if (Span* span = AddressMap::span_of(entry)) [[likely]]
            return free(*span, address, error);
        return free(map, entry, address, error);
    }
    // The same in steps that save few registers, for a hook: of what AddressMap has for the address, a span or not.
    [[gnu::always_inline]] static Freed free(Span& span, uint64_t address, int* error) {
        return of(*span.owner).free_small(&span, address, error);
    }
    [[gnu::always_inline]] static Freed free(const Map& map, AddressMap::Entry entry, uint64_t address, int* error) {
        const Segment* const segment = map.segment(address);
        if (!segment)
            return Freed::not_ours;
        const AddressMap::Here here = AddressMap::beside_spans(entry, address);
        if (!here.block || here.begin != address)
            return Freed::invalid;
        return of(*segment->owner).free_large(here.block, address, error);
    }

    // A block of the program's that contains an address.
    struct Found {
        uint64_t address = 0, requested = 0;  // 0: none
        const Segment* segment = nullptr;
        CachingAllocator* owner = nullptr;
    };
    static Found find(Map& map, uint64_t address);
    // There is more to know of this block: forget() is to be called when it is freed. False if it is none.
    static bool mark(Map& map, uint64_t address);

    // Makes what nobody uses available again, waiting for the GPU if need be, and gives idle segments back, at least
    // `bytes` of them if there are so many. Returns how many bytes of segments it were.
    uint64_t trim(uint64_t bytes);
    // The same with what has been seen idle for `long_enough`, by a clock of the caller's that is at `now`, and without
    // waiting; with `asleep` also what threads keep to themselves.
    uint64_t release_idle(uint64_t now, uint64_t long_enough, bool asleep);
    // Somebody else needs memory: gives idle segments back, without waiting.
    void help_out();
    // Takes what there is room for, if that is what this allocator does. True if it got some, or need not.
    bool top_up(AllocationError* denied);

    // Bytes of segments that the program has no block in.
    uint64_t unused() const;
    uint64_t reserved() const { return heap_.held(); }
    Statistics statistics();
    // How often anything has been done here, to see whether it has been lately.
    uint64_t operations() const;

    // See SegmentHeap::inspect.
    void inspect(void (*segment)(const Segment&, void*), void (*block)(const Block&, void*), void* argument) const {
        heap_.inspect(segment, block, argument);
    }

    // A thread ends: its caches go back to where they are from.
    static void thread_ends();
    // In a forked child: this thread has none.
    static void forget_thread() { own_caches_ = {}; }

    // Ends a search for memory that this thread has left by a longjmp. It has no lock any more.
    void leave();

  private:
    // Inlined because programs call it most of all: a call of it would be a tenth of its time.
    [[gnu::always_inline]] uint64_t from_magazine(uint64_t bytes);
    static CachingAllocator& of(BlockOwner& owner) { return static_cast<CachingAllocator&>(owner); }
    uint64_t allocate_small(uint64_t bytes, AllocationError* denied);
    uint64_t allocate_large(uint64_t bytes);
    uint64_t allocate_large_slowly(uint64_t bytes, AllocationError* denied);
    bool find_memory(SegmentHeap::Request* request, AllocationError* denied);
    bool find_where_short(SegmentHeap::Request* request, uint64_t refused, AllocationError* denied);
    [[gnu::always_inline]] Freed free_small(Span* span, uint64_t address, int* error);
    Freed free_small_slowly(Span* span, uint64_t address, uint32_t requested, bool quiet);
    Freed free_large(Block* block, uint64_t address, int* error);
    bool free_in_thread(Block* block, bool quiet);
    bool defer_in_next(ThreadCache& cache, Block* block);
    [[gnu::always_inline]] bool may_free(uint64_t address, bool* quiet, int* error);

    // This thread's cache of this allocator; null if it has none, or used another allocator's last.
    [[gnu::always_inline]] ThreadCache* cache_at_hand() const {
        if (own_caches_.owner_of_first != this)
            return nullptr;
        ThreadCache* const cache = own_caches_.first;
        if (!cache)
            __builtin_unreachable();
        return cache;
    }
    ThreadCache* own_cache();
    uint64_t from_kept(uint64_t bytes);
    [[gnu::always_inline]] inline uint64_t take_kept(ThreadCache& cache, uint64_t bytes);
    bool deferred_first(uint64_t bytes) const { return own_caches_.first && own_caches_.first->none_from <= bytes; }
    uint64_t from_deferred(uint64_t bytes);

    void queue_full(const DeferredFrees::Full& full);
    bool passed(Batch* batch, bool wait);
    bool reuse_deferred(ReuseScope scope);
    bool give_back_passed(bool wait, uint64_t life);
    void flush_caches(bool wait);
    void note_peaks(uint64_t used) {
        if (!threads_.peaks_cover(used, deferred_.bytes()))
            threads_.note_peaks();
    }

    // Stands at the beginning of what may change the statistics, before any lock. To report a change costs more than
    // the change itself, so what is small is reported when it has become something.
    class Changing {
      public:
        explicit Changing(CachingAllocator& allocator) : allocator_(allocator) {}
        ~Changing() {
            const uint64_t moved =
                allocator_.heap_.moved().get() + allocator_.deferred_.moved().get() + allocator_.threads_.moved().get();
            if (moved >= allocator_.worth_reporting_) [[unlikely]]
                allocator_.report();
        }
        Changing(const Changing&) = delete;
        Changing& operator=(const Changing&) = delete;

      private:
        CachingAllocator& allocator_;
    };
    static constexpr uint64_t kWorthReporting = 16 << 20, kShareWorthReporting = 64;
    // A program that makes others look all the time doesn't pay for each.
    static constexpr uint64_t kSeldom = 1024, kOftenWorth = 64;
    void report();
    void choose_worth_reporting();

    // This thread's caches, of every allocator over this kind of backing that it has used; the one used last is first.
    struct OwnCaches {
        ThreadCache* first = nullptr;
        const BlockOwner* owner_of_first = nullptr;  // null: there is none

        ThreadCache* begin_with(ThreadCache* cache) {
            owner_of_first = cache ? cache->owner : nullptr;
            return first = cache;
        }
    };
    static constinit thread_local OwnCaches own_caches_;

    B& backing_;
    AddressMap* map_ = nullptr;
    Reuse reuse_ = Reuse::strict;
    Life life_;
    std::atomic<uint64_t> syncs_{0}, reports_{0};
    // Bytes. Chosen anew with each report, as one comes at once when what is held has changed.
    Relaxed<uint64_t> worth_reporting_ = kWorthReporting;
    ThreadCaches threads_{*this, deferred_, heap_, life_};
    DeferredFrees deferred_{heap_, life_};
    SegmentHeap heap_{*this, life_};
    SegmentSupply<B> supply_{heap_, backing_, life_};
};

template <Backing B>
constinit thread_local typename CachingAllocator<B>::OwnCaches CachingAllocator<B>::own_caches_{};

// 0 if this thread has none of the size.
template <Backing B>
inline uint64_t CachingAllocator<B>::from_magazine(uint64_t bytes) {
    ThreadCache* cache = cache_at_hand();
    if (!cache || !cache->lock.enter()) [[unlikely]]
        return 0;
    Magazine& magazine = cache->magazines[SizeClass::of(bytes)];
    if (!magazine.count) [[unlikely]] {
        cache->lock.leave();
        return 0;
    }
    const SmallBlock block = magazine.slots[--magazine.count];
    block.word->store(Span::kLive | static_cast<uint32_t>(bytes), std::memory_order_relaxed);
    cache->traffic.allocate(magazine.bytes, bytes);
    cache->lock.leave();
    if (!block.address)
        __builtin_unreachable();  // so that nobody asks again whether there was one
    return block.address;
}

// Takes a block that this thread keeps, with the cache's lock. 0 if it keeps none of the size.
template <Backing B>
inline uint64_t CachingAllocator<B>::take_kept(ThreadCache& cache, uint64_t bytes) {
    Block* block = cache.kept.take(SizeClass::rounded(bytes));
    if (!block)
        return 0;
    block->requested = bytes;
    map_->set(block);
    cache.traffic.allocate(block->bytes, bytes);
    return block->address;
}

// True if the driver lets the program free here and now. `quiet`: no work can still touch what is freed.
template <Backing B>
inline bool CachingAllocator<B>::may_free(uint64_t address, bool* quiet, int* error) {
    if (reuse_ == Reuse::deferred)
        return (*error = backing_.in_context()) == 0;
    const int result = backing_.quiesce(address, true);
    *quiet = result == 0;
    if (*quiet || result == kNotNow) [[likely]]
        return true;
    *error = result;
    return false;
}

template <Backing B>
inline auto CachingAllocator<B>::free_small(Span* span, uint64_t address, int* error) -> Freed {
    const uint32_t index = span->index_of(address);
    if (index == Span::kNone || span->address_of(index) != address)
        return Freed::invalid;
    auto& word = span->word(index);
    bool quiet = false;
    if (!may_free(address, &quiet, error))
        return Freed::failed;
    uint32_t live = word.load(std::memory_order_relaxed);
    do {
        if (!(live & Span::kLive))
            return Freed::invalid;
    } while (!word.compare_exchange_weak(live, Span::kNone, std::memory_order_acq_rel, std::memory_order_relaxed));
    const auto requested = [&] { return live & Span::kRequested; };  // asked for late, it takes a register less
    if (live & Span::kMarked && !backing_.forget(address)) {
        heap_.abandon_freed(SizeClass::bytes(span->size_class), requested());
        return Freed::done;
    }

    ThreadCache* cache = cache_at_hand();
    if (cache && cache->lock.enter()) [[likely]] {
        const unsigned size_class = span->size_class;
        const uint64_t bytes = span->block_bytes;
        if (quiet) {
            Magazine& magazine = cache->magazines[size_class];
            if (magazine.count < magazine.capacity) [[likely]] {
                magazine.slots[magazine.count++] = {address, &word};
                cache->traffic.free(bytes, requested());
                cache->lock.leave();
                return Freed::done;
            }
        } else if (Batch* open = cache->open; open && open->count < Batch::kMax && open->bytes < Batch::kMaxBytes) {
            open->add(SmallBlock{address, &word}, size_class);
            cache->deferred.add(bytes);
            cache->traffic.free(bytes, requested());
            cache->lock.leave();
            return Freed::done;
        }
        cache->lock.leave();
    }
    return free_small_slowly(span, address, requested(), quiet);
}

}  // namespace cuslice
