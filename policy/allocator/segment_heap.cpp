// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/segment_heap.h"

#include <algorithm>

#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

constexpr uint64_t saturated_sum(uint64_t a, uint64_t b) { return a > ~0ull - b ? ~0ull : a + b; }

}  // namespace

void SegmentHeap::open(AddressMap& map, bool preallocate) {
    spans_.open(map);
    map_ = &map;
    preallocate_ = preallocate;
}

uint64_t SegmentHeap::close() {
    const uint64_t count = segments_.count();
    while (Segment* segment = segments_.first()) {
        for (Block* block = segment->first; block; block = block->after) {
            if (Span* span = block->state == Block::State::span ? map_->at(block->address).span : nullptr)
                spans_.forget(span);
            else if (block->state == Block::State::used)
                map_->clear(block);
        }
        map_->remove(segment->begin, segment->end);
        segments_.remove(segment);
    }
    spans_.forget_lists();
    held_.store(0, std::memory_order_relaxed);
    traffic_.reset();
    counts_ = {};
    last_segment_ = abandoned_ = exchanged_ = 0;
    return count;
}

bool SegmentHeap::serve_ready(Request* request) {
    if (!spans_.take(request->size_class, &request->got, 1))
        return false;
    moved_.add(SizeClass::bytes(request->size_class));
    request->used = used();
    return true;
}

inline bool SegmentHeap::serve(Request* request, Place place) {
    if (request->small())
        return serve_ready(request) || (spans_.make(request->size_class, &owner_, place) && serve_ready(request));
    return (request->got.address = serve_large(request->bytes, request->need, place, &request->used));
}

bool SegmentHeap::take(Request* request, Place place) {
    LockGuard lock(mutex_);
    return serve(request, place);
}

bool SegmentHeap::take_ready(Request* request) {
    LockGuard lock(mutex_);
    return serve_ready(request);
}

unsigned SegmentHeap::take(unsigned size_class, SmallBlock* into, unsigned most) {
    UncancelledLockGuard lock(mutex_);
    const unsigned taken = spans_.take(size_class, into, most);
    moved_.add(taken * SizeClass::bytes(size_class));
    return taken;
}

void SegmentHeap::free_small(const SmallBlock& block, unsigned size_class, uint64_t requested) {
    const uint64_t bytes = SizeClass::bytes(size_class);
    UncancelledLockGuard lock(mutex_);
    traffic_.free(bytes, requested);
    moved_.add(bytes);
    spans_.give_back(block.address);
}

void SegmentHeap::give_back(Block* const* blocks, unsigned count, uint64_t life) {
    UncancelledLockGuard lock(mutex_);
    for (unsigned i = 0; i < count && life_.is(life); i++)
        segments_.give_back(blocks[i]);
}

void SegmentHeap::give_back(const SmallBlock* blocks, unsigned count) {
    UncancelledLockGuard lock(mutex_);
    for (unsigned i = 0; i < count; i++)
        spans_.give_back(blocks[i].address);
}

void SegmentHeap::give_back(const Batch& batch) {
    if (!batch.count)
        return;  // a thread keeps all of them
    UncancelledLockGuard lock(mutex_);
    for (uint32_t i = 0; i < batch.count; i++) {
        if (Block* block = Batch::large(batch.blocks[i]))
            segments_.give_back(block);
        else
            spans_.give_back(Batch::small(batch.blocks[i]).address);
    }
}

void SegmentHeap::abandon(Block* block) {
    LockGuard lock(mutex_);
    segments_.abandon(block);
    abandoned_ += block->bytes;
}

void SegmentHeap::abandon_freed(Block* block) {
    LockGuard lock(mutex_);
    traffic_.free(block->bytes, block->requested);
    moved_.add(block->bytes);
    segments_.abandon(block);
    abandoned_ += block->bytes;
}

void SegmentHeap::abandon(uint64_t bytes) {
    LockGuard lock(mutex_);
    abandoned_ += bytes;
}

void SegmentHeap::abandon_freed(uint64_t bytes, uint64_t requested) {
    const DisableCancellation uncancelled;
    LockGuard lock(mutex_);
    traffic_.free(bytes, requested);
    abandoned_ += bytes;
}

void SegmentHeap::count_allocation(uint64_t bytes, uint64_t requested) {
    LockGuard lock(mutex_);
    traffic_.allocate(bytes, requested);
}

void SegmentHeap::trim_spans() {
    LockGuard lock(mutex_);
    spans_.trim();
}

void SegmentHeap::note_held() {
    held_.store(segments_.bytes(), std::memory_order_relaxed);
    counts_.reserved.peak = std::max(counts_.reserved.peak, segments_.bytes());
    moved_.at_once();
}

// With the lock held, of a segment with nothing in it but free and abandoned blocks. From here on the driver may hand
// out its addresses again, so nothing is known of them any more.
SegmentHeap::Detached SegmentHeap::detach(Segment* segment) {
    abandoned_ -= segment->abandoned;
    map_->remove(segment->begin, segment->end);
    segments_.take_out(segment);
    counts_.segments_given_back++;
    counts_.reserved.freed += segment->bytes;
    note_held();
    return {segment, life_.number()};
}

SegmentHeap::Detached SegmentHeap::detach_idle(uint64_t bytes, uint64_t since, bool huge_only) {
    LockGuard lock(mutex_);
    Segment* best = nullptr;
    for (Segment* segment = segments_.first(); segment; segment = segment->next) {
        const bool too_new = since != ~0ull && (!segment->idle_since || segment->idle_since > since);
        if (!Segments::idle(*segment) || too_new || (huge_only && !segment->huge))
            continue;
        const bool better = !best || (best->bytes < bytes ? segment->bytes > best->bytes
                                                          : segment->bytes >= bytes && segment->bytes < best->bytes);
        if (better)
            best = segment;
    }
    return best ? detach(best) : Detached{};
}

SegmentHeap::Detached SegmentHeap::detach_worn_out() {
    LockGuard lock(mutex_);
    Segment* segment = segments_.worn_out();
    return segment ? detach(segment) : Detached{};
}

uint64_t SegmentHeap::end_detached(const Detached& detached, bool taken) {
    Segment* segment = detached.segment;
    const uint64_t bytes = segment->bytes;
    LockGuard lock(mutex_);
    // Its context may have ended since, and this be another one's allocator.
    if (taken || !life_.is(detached.life) || !map_->add(segment, segment->begin, segment->end)) {
        segments_.drop(segment);
        return taken ? bytes : 0;
    }
    segments_.put_back(segment);
    segment->idle_since = 0;
    abandoned_ += segment->abandoned;
    counts_.segments_given_back--;
    counts_.reserved.freed -= bytes;
    note_held();
    return 0;
}

void SegmentHeap::note_idle(uint64_t now) {
    LockGuard lock(mutex_);
    segments_.note_idle(now);
}

bool SegmentHeap::may_exchange(uint64_t bytes, const Live& live) const {
    LockGuard lock(mutex_);
    return exchanged_ <= GrowthPolicy::kExchanges * live.peak && segments_.idle_huge_bytes() >= bytes;
}

// Small blocks leave little over of any segment, and what is exchanged all the time is no longer the program's own.
bool SegmentHeap::badly_cut(const Request& request) const {
    const uint64_t held = segments_.bytes(), bytes = GrowthPolicy::least(request.need);
    return bytes >= held / GrowthPolicy::kSmallest && exchanged_ <= GrowthPolicy::kExchanges * held &&
           segments_.opens_idle(request.need) && segments_.stranded(bytes) > held / GrowthPolicy::kStranded;
}

void SegmentHeap::note_exchanged(uint64_t bytes) {
    LockGuard lock(mutex_);
    exchanged_ += bytes;
}

void SegmentHeap::count_short_of_memory(bool found) {
    LockGuard lock(mutex_);
    (found ? counts_.retries : counts_.ooms)++;
    moved_.at_once();
}

// Most bytes to hold once there are `more` bytes in the program's hands too. No bound without huge segments, as
// nothing can be done about it then.
uint64_t SegmentHeap::enough(const Live& live, uint64_t more, bool huge, uint64_t room, uint64_t held) const {
    if (!huge && !segments_.huge_bytes())
        return ~0ull;
    const uint64_t most = std::max(live.peak, saturated_sum(live.out, more));
    return std::min(GrowthPolicy::enough(most), saturated_sum(held, room));
}

SegmentHeap::Next SegmentHeap::next(Request* request, const Live& live, uint64_t room, Taking* taking) {
    const uint64_t need = request->need;
    const bool huge = GrowthPolicy::huge(need);
    LockGuard lock(mutex_);
    if (serve(request, Place::proper))
        return Next::served;
    if (!huge && taking_spare_ >= need) {
        taking_spare_ -= need;
        return Next::wait;
    }
    const uint64_t held = segments_.bytes() + taking_bytes_, soon = taking_bytes_ - taking_spare_;
    const uint64_t wanted = huge ? GrowthPolicy::least(need) : GrowthPolicy::next(need, held, last_segment_, room);
    const uint64_t most = enough(live, saturated_sum(soon, need), huge, room, held);
    const uint64_t bytes = GrowthPolicy::within(most, held, wanted, need);
    if (!bytes || bytes > room)
        return Next::nothing;
    *taking = {bytes, huge ? 0 : bytes - need};
    taking_++, taking_bytes_ += bytes, taking_spare_ += taking->spare;
    return Next::take;
}

void SegmentHeap::end_taking(const Taking& taking) {
    LockGuard lock(mutex_);
    taking_--, taking_bytes_ -= taking.bytes, taking_spare_ -= std::min(taking_spare_, taking.spare);
}

uint64_t SegmentHeap::taking() const {
    LockGuard lock(mutex_);
    return taking_;
}

SegmentHeap::Plan SegmentHeap::plan(const Request& request, const Live& live, uint64_t room) const {
    const bool of_its_own = huge(request);
    LockGuard lock(mutex_);
    const uint64_t wanted = of_its_own ? GrowthPolicy::least(request.need)
                                       : GrowthPolicy::next(request.need, segments_.bytes(), last_segment_, room);
    return {wanted, enough(live, request.need, of_its_own, room, segments_.bytes())};
}

SegmentHeap::Added SegmentHeap::add(const Memory& memory, uint64_t asked, uint64_t life, Request* request) {
    LockGuard lock(mutex_);
    // Its context may have ended since, and this be another one's allocator.
    if (!life_.is(life))
        return Added::no;
    Segment* segment = segments_.add(memory.address, memory.bytes, memory.begin, memory.end, &owner_, memory.huge);
    if (!segment)
        return Added::no;
    if (!map_->add(segment, memory.begin, memory.end)) {
        segments_.remove(segment);
        return Added::no;
    }
    last_segment_ = asked;
    counts_.segments_taken++;
    note_held();
    return request && serve(request, Place::any) ? Added::served : Added::yes;
}

void SegmentHeap::inspect(void (*segment)(const Segment&, void*), void (*block)(const Block&, void*),
                          void* argument) const {
    LockGuard lock(mutex_);
    for (const Segment* at = segments_.first(); at; at = at->next) {
        segment(*at, argument);
        for (const Block* piece = at->first; piece; piece = piece->after)
            block(*piece, argument);
    }
}

SegmentHeap::Used SegmentHeap::find(const Segment* segment, uint64_t address) const {
    LockGuard lock(mutex_);
    const AddressMap::Here here = map_->around(address);
    const Block* block = here.block;
    if (map_->segment(address) != segment || !block || address - here.begin >= block->requested)
        return {};
    return {block->address, block->requested};
}

bool SegmentHeap::mark(uint64_t address) {
    LockGuard lock(mutex_);
    Block* block = map_->at(address).block;
    if (!block || block->address != address)
        return false;
    return block->marked = true;
}

void SegmentHeap::add_to(Statistics* statistics) const {
    statistics->reserved.current = segments_.bytes();
    statistics->reserved.peak = std::max(counts_.reserved.peak, segments_.bytes());
    statistics->reserved.freed = counts_.reserved.freed;
    statistics->reserved.allocated = statistics->reserved.current + statistics->reserved.freed;
    statistics->segments = segments_.count();
    statistics->segments_taken = counts_.segments_taken;
    statistics->segments_given_back = counts_.segments_given_back;
    statistics->retries = counts_.retries;
    statistics->ooms = counts_.ooms;
    statistics->largest_free = segments_.largest_free();
    statistics->own_memory += segments_.memory() + spans_.memory();
}

}  // namespace cuslice
