#pragma once
#include <cstdint>

#include "policy/allocator/address_map.h"
#include "policy/allocator/backing.h"
#include "policy/allocator/growth.h"
#include "policy/allocator/records.h"
#include "policy/allocator/segments.h"
#include "policy/allocator/spans.h"
#include "policy/allocator/statistics.h"
#include "policy/allocator/thread_cache.h"
#include "policy/base/event_count.h"
#include "policy/base/mutex.h"

namespace cuslice {

// This thread's caches, of every allocator that it has used; the one used last is first.
extern constinit thread_local ThreadCache* thread_caches;

// Memory of one GPU context, kept for reuse between the program's frees and its next allocations.
//
// Up to 64 KiB, a block comes from the thread's own magazine and goes back there; magazines are filled from spans,
// spans and larger blocks are cut from segments, best fit, and segments are what the backing gives:
//
//     ThreadCache → Spans → Segments → Backing
//
// Of larger blocks a thread keeps the few that it has freed last, for its next allocation of the same size.
//
// A freed block may still be in use by the GPU. `strict` waits for the GPU in free(); `deferred` defers the block in a
// batch, makes one fence for all of it, and lets nobody have it before the GPU has come past. While a stream is
// captured neither can be done, and freed blocks are deferred until it can.
//
// Thread-safe, but open(). Never calls the backing while holding mutex_.
class CachingAllocator {
  public:
    enum class Reuse : std::uint8_t { strict, deferred };
    struct Options {
        Reuse reuse = Reuse::strict;
        bool preallocate = false;  // all that there is room for, always
    };

    // Before any other use, or after close().
    void open(const Backing& backing, AddressMap& map, const Options& options) CUSLICE_UNCHECKED;
    // Its context is gone, and with it its segments. No thread may be allocating or freeing in it; one that trims it or
    // looks at it finds nothing more to do. Returns what it has done in its time; the next one's begins with nothing.
    Statistics close();
    bool is_open() const { return open_now_.load(std::memory_order_acquire); }

    // bytes > 0. The address, or 0 and why: on a boundary of 512 bytes; of more than 64 KiB, of 4 KiB; from 2 MiB on,
    // of 64 KiB; from 64 MiB on, of 2 MiB.
    std::uint64_t allocate(std::uint64_t bytes, Denied* denied) {
        if (const std::uint64_t address = allocate_at_once(bytes)) [[likely]]
            return address;
        return bytes > SizeClass::kMax ? allocate_large(bytes, denied) : allocate_small(bytes, denied);
    }
    // The same out of this thread's own magazine, or 0.
    std::uint64_t allocate_at_once(std::uint64_t bytes) { return bytes <= SizeClass::kMax ? from_magazine(bytes) : 0; }

    enum class Freed : std::uint8_t {
        done,
        not_ours,  // in no segment of any allocator
        invalid,   // in a segment, but no block of the program's begins there
        failed,    // the driver's error; the block is still the program's
    };
    // Of any allocator that uses this map.
    static Freed free(AddressMap& map, std::uint64_t address, int* error) {
        if (Span* span = map.span_at(address)) [[likely]]
            return span->owner->free_small(span, address, error);
        return free_large(map, map.at(address), address, error);
    }

    // A block of the program's that contains an address.
    struct Found {
        std::uint64_t address = 0, requested = 0;  // 0: none
        const Segment* segment = nullptr;
        CachingAllocator* owner = nullptr;
    };
    static Found find(AddressMap& map, std::uint64_t address);
    // False if a range that begins in a segment, of any allocator, is not within one block of the program's, which
    // reaches as far as its size was rounded up. Without a lock.
    static bool holds(const AddressMap& map, std::uint64_t address, std::uint64_t bytes);
    // There is more to know of this block: forget() is to be called when it is freed. False if it is none.
    static bool mark(AddressMap& map, std::uint64_t address);

    // Makes what nobody uses available again, waiting for the GPU if need be, and gives idle segments back, at least
    // `bytes` of them if there are so many. Returns how many bytes of segments it were.
    std::uint64_t trim(std::uint64_t bytes);
    // The same with what has been seen idle for `long_enough`, by a clock of the caller's that is at `now`, and without
    // waiting; with `asleep` also what threads keep to themselves.
    std::uint64_t release_idle(std::uint64_t now, std::uint64_t long_enough, bool asleep);
    // Somebody else needs memory: gives idle segments back, without waiting.
    void help_out();
    // Takes what there is room for, if that is what this allocator does. True if it got some, or need not.
    bool top_up(Denied* denied);

    // Bytes of segments that the program has no block in.
    std::uint64_t unused() const;
    std::uint64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
    Statistics statistics();
    // How often anything has been done here, to see whether it has been lately.
    std::uint64_t operations() const;

    // Calls visit for every segment and, after it, its blocks, with the allocator locked: visits must not call back.
    void inspect(void (*segment)(const Segment&, void*), void (*block)(const Block&, void*), void* argument);

    // A thread ends: its caches go back to where they are from.
    static void thread_ends();

    // Of a thread that has left whatever it was doing by a longjmp, with no lock any more.
    void leave();

  private:
    // What a program calls most of all; a call of it would be a tenth of its time.
    [[gnu::always_inline]] std::uint64_t from_magazine(std::uint64_t bytes);
    std::uint64_t allocate_small(std::uint64_t bytes, Denied* denied);
    std::uint64_t allocate_large(std::uint64_t bytes, Denied* denied);
    Block* take_large(std::uint64_t bytes, Segments::Place place) CUSLICE_REQUIRES(mutex_);
    [[gnu::always_inline]] Freed free_small(Span* span, std::uint64_t address, int* error);
    Freed free_small_slowly(Span* span, std::uint64_t address, std::uint32_t requested, bool quiet);
    static Freed free_large(AddressMap& map, const AddressMap::Here& here, std::uint64_t address, int* error);
    Freed free_own_large(Block* block, std::uint64_t address, int* error);
    std::uint64_t from_kept(std::uint64_t bytes);
    [[gnu::always_inline]] inline std::uint64_t take_kept(ThreadCache& cache, std::uint64_t bytes);
    bool deferred_first(std::uint64_t bytes) const { return thread_caches && thread_caches->none_from <= bytes; }
    std::uint64_t from_deferred(std::uint64_t bytes);
    bool keep(Block* block);
    bool defer_own(Block* block);
    bool defer_own_slowly(ThreadCache& cache, Block* block);
    [[gnu::always_inline]] bool may_free(std::uint64_t address, bool* quiet, int* error);

    // Stands at the beginning of what may change the statistics, before any lock. To tell others costs more than the
    // change itself, so what is small is told when it has become something.
    class Changing {
      public:
        explicit Changing(CachingAllocator& allocator) : allocator_(allocator) {}
        ~Changing() {
            const std::uint64_t moved = allocator_.moved_.load(std::memory_order_relaxed);
            const std::uint64_t worth = allocator_.tells_.load(std::memory_order_relaxed) < kSeldom
                                            ? kWorthTelling
                                            : kWorthTelling * kOftenWorth;
            if (moved >= worth && moved >= allocator_.reserved() / kShareWorthTelling) allocator_.tell();
        }
        Changing(const Changing&) = delete;
        Changing& operator=(const Changing&) = delete;

      private:
        CachingAllocator& allocator_;
    };
    static constexpr std::uint64_t kWorthTelling = 16 << 20, kShareWorthTelling = 64;
    // A program that makes others be told all the time doesn't pay for each.
    static constexpr std::uint64_t kSeldom = 1024, kOftenWorth = 64;
    static constexpr std::uint64_t kAtOnce = 1ull << 62;
    // With the lock held: so many bytes are in other hands now.
    void moved(std::uint64_t bytes) CUSLICE_REQUIRES(mutex_) {
        const std::uint64_t before = moved_.load(std::memory_order_relaxed);
        moved_.store(before < kAtOnce ? before + bytes : kAtOnce, std::memory_order_relaxed);
    }
    void tell() {
        moved_.store(0, std::memory_order_relaxed);
        tells_.fetch_add(1, std::memory_order_relaxed);
        backing_.changed(backing_.self);
    }

    void abandon(std::uint64_t bytes, std::uint64_t requested);
    // Whether it has not been closed since this was read from life_.
    bool lives(std::uint64_t life) const { return life_.load(std::memory_order_acquire) == life && is_open(); }

    template <typename Attempt>
    bool find_memory(std::uint64_t need, Attempt attempt, Denied* denied);
    template <typename Attempt>
    bool find_more_memory(std::uint64_t need, Attempt attempt, Denied* denied);
    template <typename Attempt>
    bool grow_beside_others(std::uint64_t need, Attempt attempt, std::uint64_t* refused, Denied* denied);
    void end_taking();
    void forget_looking();
    template <typename Attempt>
    bool find_where_short(std::uint64_t need, Attempt attempt, std::uint64_t refused, Denied* denied);
    void await_growth();
    bool take_rest(Denied* denied) CUSLICE_REQUIRES(growing_);
    template <typename Serve>
    bool add_segment(std::uint64_t bytes, bool huge, Denied* denied, Serve serve);
    bool add_segment(std::uint64_t bytes, Denied* denied);
    std::uint64_t enough(std::uint64_t need, bool huge, std::uint64_t room, std::uint64_t held) const
        CUSLICE_REQUIRES(mutex_);
    void count_short_of_memory(bool found);
    bool exchange_idle(std::uint64_t most, std::uint64_t bytes, bool no_other_way) CUSLICE_REQUIRES(growing_);
    // A segment that nobody uses any more, and which the backing is to have back.
    struct Detached {
        Segment* segment = nullptr;
        std::uint64_t life = 0;
    };
    Detached detach(Segment* segment) CUSLICE_REQUIRES(mutex_);
    std::uint64_t give_back(const Detached& detached);
    std::uint64_t give_back_worn_out();
    std::uint64_t give_back_idle(std::uint64_t bytes, std::uint64_t since, bool huge_only = false);

    ThreadCache* own_cache();
    void take_leave(ThreadCache* cache);
    std::uint64_t may_be_kept() const CUSLICE_REQUIRES(mutex_);
    bool grant(ThreadCache& cache, std::uint64_t bytes) CUSLICE_REQUIRES(mutex_);
    void renounce(ThreadCache& cache, std::uint64_t bytes) CUSLICE_REQUIRES(mutex_);
    void set_capacity(ThreadCache& cache, unsigned size_class, unsigned capacity) CUSLICE_REQUIRES(mutex_);
    void give_up_kept(ThreadCache& cache) CUSLICE_REQUIRES(mutex_);
    void make_way(ThreadCache& cache, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    void enlarge(ThreadCache& cache, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    unsigned refill(ThreadCache& cache, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    bool make_room(ThreadCache& cache, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    void keep_more(ThreadCache& cache, std::uint64_t wanted);
    template <typename Which>
    void take_from(Which which) CUSLICE_REQUIRES(mutex_);
    void take_from_idle() CUSLICE_REQUIRES(mutex_);
    bool reuse_deferred(bool wait, bool large);
    bool passed(Batch* batch, bool wait);
    bool quiesce(const Batch& batch);
    bool too_much_deferred(const Batch& batch);
    void number(Batch* batch) CUSLICE_REQUIRES(mutex_);
    void return_batch(Batch* batch) CUSLICE_REQUIRES(mutex_);
    bool hand_back(Batch* batch, std::uint64_t life, bool was_queued);
    void keep_own(Batch* batch, std::uint64_t life);
    Batch* next_deferred(std::uint64_t life);
    void defer_again(Batch* batch, std::uint64_t life);
    void drop(Batch* batch) CUSLICE_REQUIRES(mutex_);
    Batch* defer(const SmallBlock& block, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    Batch* defer(Block* block) CUSLICE_REQUIRES(mutex_);
    Batch* deferral_place() CUSLICE_REQUIRES(mutex_);
    Batch* if_full(Batch* batch) CUSLICE_REQUIRES(mutex_);
    [[gnu::always_inline]] inline void queue(Batch* batch, std::uint64_t life);
    void queue_full(Batch* batch, bool first);
    void flush_caches(bool wait);
    void empty(ThreadCache& cache) CUSLICE_REQUIRES(mutex_);
    void note_peaks() CUSLICE_REQUIRES(mutex_);
    Traffic total_traffic() const CUSLICE_REQUIRES(mutex_);
    static Batch* take_open(ThreadCache& cache, Batch* ThreadCache::*which);
    bool worth_own_fence(const Block& block) const;
    Batch* defer_alone(Block* block, Fence fence) CUSLICE_REQUIRES(mutex_);

    Backing backing_;
    AddressMap* map_ = nullptr;
    Options options_;
    std::atomic<bool> unaligned_{false};  // the driver's segments don't begin where ours do
    std::atomic<bool> no_place_{false};   // they lie where there is no map of them

    // Where memory is short one thread at a time gives idle segments back and takes others: nobody else is to have what
    // comes of it. Before mutex_, if both.
    Mutex growing_{LockRank::growing};
    std::atomic<unsigned> short_of_room_{0};                // threads that want it
    EventCount grown_;                                      // a segment that was being taken is there, or was refused
    alignas(64) mutable Mutex mutex_{LockRank::allocator};  // over everything below
    Segments segments_ CUSLICE_GUARDED_BY(mutex_);
    Spans spans_ CUSLICE_GUARDED_BY(mutex_){segments_};
    Records<Batch> batches_ CUSLICE_GUARDED_BY(mutex_);
    Batch* open_ CUSLICE_GUARDED_BY(mutex_) = nullptr;  // freed large blocks, and no fence yet
    Batch *oldest_ CUSLICE_GUARDED_BY(mutex_) = nullptr, *newest_ CUSLICE_GUARDED_BY(mutex_) = nullptr;
    std::uint64_t last_number_ CUSLICE_GUARDED_BY(mutex_) = 0, quiet_up_to_
                                                               CUSLICE_GUARDED_BY(mutex_) = 0;  // numbers of batches
    ThreadCache* caches_ CUSLICE_GUARDED_BY(mutex_) = nullptr;
    ThreadCache* spare_caches_ CUSLICE_GUARDED_BY(mutex_) = nullptr;
    std::uint64_t cache_memory_ CUSLICE_GUARDED_BY(mutex_) = 0;
    Traffic traffic_ CUSLICE_GUARDED_BY(mutex_);  // large blocks, threads that have ended, and whoever had no cache
    std::uint64_t last_segment_ CUSLICE_GUARDED_BY(mutex_) = 0, queued_ CUSLICE_GUARDED_BY(mutex_) = 0,
                                abandoned_ CUSLICE_GUARDED_BY(mutex_) = 0,
                                exchanged_ CUSLICE_GUARDED_BY(mutex_) = 0;  // bytes
    // Of segments that are being taken beside each other: how many, their bytes, and what will be left in them.
    std::uint64_t taking_ CUSLICE_GUARDED_BY(mutex_) = 0, taking_bytes_ CUSLICE_GUARDED_BY(mutex_) = 0,
                          taking_spare_ CUSLICE_GUARDED_BY(mutex_) = 0;
    std::uint64_t granted_ CUSLICE_GUARDED_BY(mutex_) = 0;  // bytes that threads may keep to themselves
    unsigned short_of_memory_ CUSLICE_GUARDED_BY(mutex_) = 0, turned_down_
                                                              CUSLICE_GUARDED_BY(mutex_) = 0;  // see grant()
    Statistics told_ CUSLICE_GUARDED_BY(mutex_);  // what is counted as it happens
    std::atomic<std::uint64_t> reserved_{0}, syncs_{0}, moved_{0}, tells_{0};
    std::atomic<std::uint64_t> life_{0};  // how often it was opened and closed
    std::atomic<bool> open_now_{false};
};

// 0 if this thread has none of the size.
inline std::uint64_t CachingAllocator::from_magazine(std::uint64_t bytes) {
    ThreadCache* cache = thread_caches;
    if (!cache || cache->owner != this || !cache->lock.enter()) [[unlikely]]
        return 0;
    const unsigned size_class = SizeClass::of(bytes);
    Magazine& magazine = cache->magazines[size_class];
    std::uint64_t address = 0;
    if (magazine.count) [[likely]] {
        const SmallBlock block = magazine.slots[--magazine.count];
        block.word->store(Span::kLive | static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
        cache->traffic.allocate(SizeClass::bytes(size_class), bytes);
        address = block.address;
    }
    cache->lock.leave();
    return address;
}

// Of this thread's, with its lock. 0 if it keeps none of the size.
inline std::uint64_t CachingAllocator::take_kept(ThreadCache& cache, std::uint64_t bytes) {
    Block* block = cache.kept.take(SizeClass::rounded(bytes));
    if (!block) return 0;
    block->requested = bytes;
    map_->set(block);
    cache.traffic.allocate(block->bytes, bytes);
    return block->address;
}

// Whether the driver lets the program free here and now. `quiet`: no work can still touch what is freed.
inline bool CachingAllocator::may_free(std::uint64_t address, bool* quiet, int* error) {
    if (options_.reuse == Reuse::deferred) return (*error = backing_.in_context(backing_.self)) == 0;
    *error = backing_.quiesce(backing_.self, address, true);
    *quiet = *error == 0;
    return *quiet || *error == Backing::kNotNow;
}

inline CachingAllocator::Freed CachingAllocator::free_small(Span* span, std::uint64_t address, int* error) {
    const std::uint32_t index = span->index_of(address);
    if (index == Span::kNone || span->address_of(index) != address) return Freed::invalid;
    auto& word = span->word(index);
    std::uint32_t live = word.load(std::memory_order_relaxed);
    if (!(live & Span::kLive)) return Freed::invalid;
    bool quiet = false;
    if (!may_free(address, &quiet, error)) return Freed::failed;
    do {
        if (!(live & Span::kLive)) return Freed::invalid;
    } while (!word.compare_exchange_weak(live, Span::kNone, std::memory_order_acq_rel, std::memory_order_relaxed));
    const std::uint32_t requested = live & Span::kRequested;
    if (live & Span::kMarked && !backing_.forget(backing_.self, address)) {
        abandon(SizeClass::bytes(span->size_class), requested);
        return Freed::done;
    }

    ThreadCache* cache = thread_caches;
    if (cache && cache->owner == this && cache->lock.enter()) [[likely]] {
        const unsigned size_class = span->size_class;
        const std::uint64_t bytes = span->block_bytes;
        if (quiet) {
            Magazine& magazine = cache->magazines[size_class];
            if (magazine.count < magazine.capacity) [[likely]] {
                magazine.slots[magazine.count++] = {address, &word};
                cache->traffic.free(bytes, requested);
                cache->lock.leave();
                return Freed::done;
            }
        } else if (Batch* open = cache->open; open && open->count < Batch::kMax && open->bytes < Batch::kMaxBytes) {
            open->add(SmallBlock{address, &word}, size_class);
            cache->deferred.add(bytes);
            cache->traffic.free(bytes, requested);
            cache->lock.leave();
            return Freed::done;
        }
        cache->lock.leave();
    }
    return free_small_slowly(span, address, requested, quiet);
}

}  // namespace cuslice
