// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/allocator/backing.h"
#include "policy/allocator/segment_heap.h"
#include "policy/base/event_count.h"

namespace cuslice {

// Takes segments from the backing for a heap, and gives those that are idle back.
//
// Thread-safe, but open(). Where memory is short one thread at a time gives idle segments back and takes others, with
// growing() held: nobody else is to have what comes of it. That lock is held over calls of the backing, and comes
// before all others of the allocator.
template <Backing B>
class SegmentSupply {
  public:
    using Request = SegmentHeap::Request;
    using Live = SegmentHeap::Live;

    SegmentSupply(SegmentHeap& heap, B& backing, const Life& life) : heap_(heap), backing_(backing), life_(life) {}
    SegmentSupply(const SegmentSupply&) = delete;
    SegmentSupply& operator=(const SegmentSupply&) = delete;

    void open(bool preallocate) {
        preallocate_ = preallocate;
        no_place_.store(false, std::memory_order_relaxed);
    }
    Mutex& growing() CUSLICE_RETURNS(growing_) { return growing_; }

    // Where there is room for what would be taken next, threads take segments at the same time: a driver that is slow
    // for one holds up no other. Whoever needs less than what will be left of one that is under way waits for that one,
    // so that a crowd doesn't take a segment each. again: that one has come, or was refused. no_room: there is more to
    // it, or *refused bytes were denied.
    enum class Grown : uint8_t { served, again, no_room };
    Grown grow_beside_others(Request* request, const Live& live, uint64_t* refused, AllocationError* denied);
    // Around the next two: other threads don't take what there is room for meanwhile.
    void begin_short();
    void end_short();
    // A segment for a request of which `refused` bytes have been denied already. Where more than enough would be held
    // with it, first what is free in huge segments, those that are idle exchanged for one that fits. failed: it is no
    // use to try anything else.
    enum class Found : uint8_t { served, nothing, failed };
    Found find_where_short(Request* request, const Live& live, uint64_t refused, AllocationError* denied)
        CUSLICE_REQUIRES(growing_);
    // Once everything that was kept for later is free: out of that, or everything idle goes back to the backing for one
    // segment of just the right size.
    bool find_at_last(Request* request, AllocationError* denied) CUSLICE_REQUIRES(growing_);
    // Ends a search here that this thread has left by a longjmp.
    void leave();
    // Before a thread begins to look for memory: ends the search that it has left by a longjmp, if there is one.
    static void forget_earlier();

    // Takes what there is room for, if that is what this allocator does. True if it got some, or need not.
    // Each segment but the last is for whole blocks of `unit` bytes, a multiple of GrowthPolicy::kGranule.
    bool take_rest(AllocationError* denied, uint64_t unit = GrowthPolicy::kGranule) CUSLICE_REQUIRES(growing_);

    // Idle segments go back until it is `bytes`; only those that are idle since before `since`. None while a stream is
    // captured. Returns how many bytes it was.
    uint64_t give_back_idle(uint64_t bytes, uint64_t since, bool huge_only = false);
    // So do those with nothing in them but abandoned blocks: the driver knows when others let go of them.
    uint64_t give_back_worn_out();

  private:
    bool add_segment(uint64_t bytes, bool huge, Request* request, AllocationError* denied);
    bool exchange_idle(const Live& live, uint64_t most, uint64_t bytes, bool no_other_way);
    void cut_anew(const Request& request) CUSLICE_REQUIRES(growing_);
    uint64_t give_back(const SegmentHeap::Detached& detached);
    void await_growth();
    void end_taking();

    // This thread's search for memory, as far as others wait for it. A longjmp may leave it half done.
    struct Looking {
        SegmentSupply* for_memory_of = nullptr;
        bool takes = false, is_short = false;  // takes a segment beside others; has found that there is no room for one
        SegmentHeap::Taking taking;
    };
    static constinit thread_local Looking looking_;

    SegmentHeap& heap_;
    B& backing_;
    const Life& life_;
    bool preallocate_ = false;
    std::atomic<bool> unaligned_{false};  // the driver's segments don't begin where ours do
    std::atomic<bool> no_place_{false};   // they lie where there is no map of them

    Mutex growing_{LockRank::growing};
    std::atomic<unsigned> short_of_room_{0};  // threads that want it
    EventCount grown_;                        // a segment that was being taken is there, or was refused
};

}  // namespace cuslice
