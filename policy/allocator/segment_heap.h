// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/allocator/address_map.h"
#include "policy/allocator/batch.h"
#include "policy/allocator/growth.h"
#include "policy/allocator/life.h"
#include "policy/allocator/segments.h"
#include "policy/allocator/spans.h"
#include "policy/allocator/statistics.h"
#include "policy/allocator/traffic.h"
#include "policy/base/mutex.h"

namespace cuslice {

// An allocator's segments, and what is free in them: cut into large blocks, and into spans of small ones. Decides which
// segment is to come next and which one may go; SegmentSupply gets it and gives it back.
//
// Thread-safe, but open(). Under its lock nothing is called but what gives memory for its records.
class SegmentHeap {
  public:
    SegmentHeap(BlockOwner& owner, const Life& life) : owner_(owner), life_(life) {}
    SegmentHeap(const SegmentHeap&) = delete;
    SegmentHeap& operator=(const SegmentHeap&) = delete;

    Mutex& mutex() const CUSLICE_RETURNS(mutex_) { return mutex_; }

    void open(AddressMap& map, bool preallocate) CUSLICE_UNCHECKED;
    // All segments are no more. Returns how many there were.
    uint64_t close() CUSLICE_REQUIRES(mutex_);

    // The needs of an allocation, and the memory that it has got.
    struct Request {
        explicit Request(uint64_t size) : bytes(size), need(SizeClass::rounded(size)) {
            if (!small())
                return;
            size_class = SizeClass::of(bytes);
            need = SizeClass::span_bytes(size_class);  // a span lies on a boundary, and what is free may not
        }
        bool small() const { return bytes <= SizeClass::kMax; }

        uint64_t bytes;           // as the program asked for them
        unsigned size_class = 0;  // of a small one
        uint64_t need;            // of a segment, at most
        SmallBlock got;           // its address is 0: nothing yet; a large block has no word
        uint64_t used = 0;        // of all segments, with what it got
    };
    using Place = Segments::Place;
    // False if there is nothing free for it there. A small block comes from a new span where no span has one.
    bool take(Request* request, Place place);
    // The same of a large block, and of `used` of a Request: most large allocations come to nothing else, and save a
    // call. The block's address, or 0.
    [[gnu::always_inline]] uint64_t take_large(uint64_t bytes, uint64_t* used) {
        UncancelledLockGuard lock(mutex_);
        if (preallocate_ && badly_cut(Request(bytes))) [[unlikely]]
            return 0;
        return serve_large(bytes, SizeClass::rounded(bytes), Place::proper, used);
    }
    // True if preallocated memory should be cut anew before it begins to be used for blocks like this one.
    bool is_badly_cut(const Request& request) const {
        LockGuard lock(mutex_);
        return badly_cut(request);
    }
    // A small block from a span that there is.
    bool take_ready(Request* request);
    // Small blocks for a magazine, from spans that there are. Returns how many.
    unsigned take(unsigned size_class, SmallBlock* into, unsigned most);

    // The program's block is free, and counted so.
    void free(Block* block) {
        const uint64_t size = block->bytes;
        UncancelledLockGuard lock(mutex_);
        traffic_.free(size, block->requested);
        moved_.add(size);
        segments_.give_back(block);
    }
    void free_small(const SmallBlock& block, unsigned size_class, uint64_t requested);
    // Frees blocks that have been counted as freed before; `life`: only as long as that lasts.
    void give_back(Block* const* blocks, unsigned count, uint64_t life);
    void give_back(const SmallBlock* blocks, unsigned count);
    void give_back(const Batch& batch);
    // Nobody may have it again. abandon_freed: and it is counted as freed.
    void abandon(Block* block);
    void abandon_freed(Block* block);
    void abandon(uint64_t bytes);
    void abandon_freed(uint64_t bytes, uint64_t requested);
    // A small block was handed out by nobody who counts for himself.
    void count_allocation(uint64_t bytes, uint64_t requested);
    // Spans that are kept in reserve become free segments' again.
    void trim_spans();

    // The program's bytes that GrowthPolicy wants to know of: now, and the most that there have been.
    struct Live {
        uint64_t out = 0, peak = 0;
    };
    // Next step of an allocation for which nothing is free. served: somebody has freed something meanwhile. take: it
    // has a Taking, to be ended once the segment has been added or refused. wait: another thread is taking a segment
    // in which enough will be left for it too. nothing: GrowthPolicy allows none that fits into `room`.
    struct Taking {
        uint64_t bytes = 0, spare = 0;  // of the segment, and of it what others may have
    };
    enum class Next : uint8_t { served, take, wait, nothing };
    Next next(Request* request, const Live& live, uint64_t room, Taking* taking);
    void end_taking(const Taking& taking);
    // How many segments are being taken so.
    uint64_t taking() const;

    // Next segment where memory is short: `wanted` bytes, but so that no more than `most` are held with it.
    struct Plan {
        uint64_t wanted = 0, most = 0;
    };
    Plan plan(const Request& request, const Live& live, uint64_t room) const;
    bool huge(const Request& request) const { return GrowthPolicy::huge(request.need) && !preallocate_; }

    // Memory that the backing gave, of which [begin, end) is to be used, becomes a segment; and the request is served,
    // if there is one, before anybody else can have of it: they could leave nothing of it.
    struct Memory {
        uint64_t address = 0, bytes = 0, begin = 0, end = 0;
        bool huge = false;
    };
    enum class Added : uint8_t { no, yes, served };
    Added add(const Memory& memory, uint64_t asked, uint64_t life, Request* request);
    // A segment that nobody uses any more, and which the backing is to have back.
    struct Detached {
        Segment* segment = nullptr;  // null: there is none
        uint64_t life = 0;
    };
    // One that is idle: the smallest that is of at least `bytes`, or else the largest; only if it is idle since before
    // `since`.
    Detached detach_idle(uint64_t bytes, uint64_t since, bool huge_only);
    // One with nothing in it but abandoned blocks.
    Detached detach_worn_out();
    // The backing has it back, or has refused it: then it is where it was, and counts as idle from now on. Returns how
    // many bytes have been given back.
    uint64_t end_detached(const Detached& detached, bool taken);
    void note_idle(uint64_t now);
    // True if there are so many bytes in idle huge segments, and these may be exchanged for others.
    bool may_exchange(uint64_t bytes, const Live& live) const;
    void note_exchanged(uint64_t bytes);
    // An allocation has found nothing before cached memory was given back, or not even then.
    void count_short_of_memory(bool found);

    // Calls visit for every segment and, after it, its blocks, with the lock held: visits must not call back.
    void inspect(void (*segment)(const Segment&, void*), void (*block)(const Block&, void*), void* argument) const;
    // The program's block that contains an address in a segment of this heap; its address is 0 if there is none.
    struct Used {
        uint64_t address = 0, requested = 0;
    };
    Used find(const Segment* segment, uint64_t address) const;
    // False if no block of the program's begins there.
    bool mark(uint64_t address);

    // Bytes of all segments. A moment's figure without the lock.
    uint64_t held() const { return held_.load(std::memory_order_relaxed); }
    // The same without what is abandoned.
    uint64_t usable() const CUSLICE_REQUIRES(mutex_) { return segments_.bytes() - abandoned_; }
    void add_to(Statistics* statistics) const CUSLICE_REQUIRES(mutex_);
    // Traffic of large blocks, and of small ones that no thread counted for itself. Written with the lock.
    const Traffic& traffic() const { return traffic_; }
    MovedBytes& moved() { return moved_; }

  private:
    [[gnu::always_inline]] bool serve(Request* request, Place place) CUSLICE_REQUIRES(mutex_);
    bool serve_ready(Request* request) CUSLICE_REQUIRES(mutex_);
    [[gnu::always_inline]] uint64_t serve_large(uint64_t bytes, uint64_t need, Place place, uint64_t* used)
        CUSLICE_REQUIRES(mutex_) {
        Block* block = segments_.take(need, alignment_of(need), place);
        if (!block)
            return 0;
        block->requested = bytes;
        const uint64_t size = block->bytes;
        map_->set_new(block);
        traffic_.allocate(size, bytes);
        moved_.add(size);
        *used = segments_.bytes() - segments_.free_bytes();
        return block->address;
    }
    // Where a large block begins. Drivers put memory of 2 MiB and more on a boundary of 2 MiB, and promise nothing of
    // what is smaller. Which boundary programs need is that of the host's pages, for a dma-buf, and of the GPU's pages
    // of 64 KiB where they map them (gdrcopy); huge blocks have segments to themselves anyhow. On 2 MiB for all, a
    // tenth of a slice would be lost in between.
    static constexpr uint64_t alignment_of(uint64_t bytes) {
        constexpr uint64_t kHostPage = 4096;
        if (bytes < GrowthPolicy::kGranule)
            return kHostPage;
        return GrowthPolicy::huge(bytes) ? GrowthPolicy::kGranule : SizeClass::kGranule;
    }
    uint64_t used() const CUSLICE_REQUIRES(mutex_) { return segments_.bytes() - segments_.free_bytes(); }
    void note_held() CUSLICE_REQUIRES(mutex_);
    uint64_t enough(const Live& live, uint64_t more, bool huge, uint64_t room, uint64_t held) const
        CUSLICE_REQUIRES(mutex_);
    bool badly_cut(const Request& request) const CUSLICE_REQUIRES(mutex_);
    Detached detach(Segment* segment) CUSLICE_REQUIRES(mutex_);

    BlockOwner& owner_;
    const Life& life_;
    AddressMap* map_ = nullptr;
    bool preallocate_ = false;

    alignas(64) mutable Mutex mutex_{LockRank::segment_heap};
    Segments segments_ CUSLICE_GUARDED_BY(mutex_);
    Spans spans_ CUSLICE_GUARDED_BY(mutex_){segments_};
    // Bytes.
    uint64_t last_segment_ CUSLICE_GUARDED_BY(mutex_) = 0;
    uint64_t abandoned_ CUSLICE_GUARDED_BY(mutex_) = 0;
    uint64_t exchanged_ CUSLICE_GUARDED_BY(mutex_) = 0;
    // Segments being taken beside each other: their number, their bytes, and the bytes that will be left in them.
    uint64_t taking_ CUSLICE_GUARDED_BY(mutex_) = 0;
    uint64_t taking_bytes_ CUSLICE_GUARDED_BY(mutex_) = 0;
    uint64_t taking_spare_ CUSLICE_GUARDED_BY(mutex_) = 0;
    Statistics counts_ CUSLICE_GUARDED_BY(mutex_);  // of segments; and the allocations for which there was no room
    // Written with the lock.
    std::atomic<uint64_t> held_{0};
    Traffic traffic_;
    MovedBytes moved_;
};

}  // namespace cuslice
