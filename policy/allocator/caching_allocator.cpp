#include "policy/allocator/caching_allocator.h"

#include <algorithm>

#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

constexpr std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) { return a > ~0ull - b ? ~0ull : a + b; }

// Where a large block begins. Drivers put memory of 2 MiB and more on a boundary of 2 MiB, and promise nothing of what
// is smaller. Which boundary programs need is that of the host's pages, for a dma-buf, and of the GPU's pages of 64 KiB
// where they map them (gdrcopy); huge blocks have segments to themselves anyhow. On 2 MiB for all, a tenth of a slice
// would be lost in between.
constexpr std::uint64_t alignment_of(std::uint64_t bytes) {
    constexpr std::uint64_t kHostPage = 4096;
    if (bytes < GrowthPolicy::kGranule) return kHostPage;
    return GrowthPolicy::huge(bytes) ? GrowthPolicy::kGranule : SizeClass::kGranule;
}

// Whether it would be denied again, however little is asked for.
constexpr bool no_use(const Denied& denied) {
    return denied.by == Denied::By::host || denied.by == Denied::By::place || denied.by == Denied::By::failure;
}

// What others wait for that this thread is doing. A longjmp may leave it half done.
struct Looking {
    CachingAllocator* for_memory_of = nullptr;
    bool takes = false, is_short = false;  // takes a segment beside others; has found that there is no room for one
    std::uint64_t bytes = 0, spare = 0;    // of the segment
};
constinit thread_local Looking looking;

}  // namespace

void CachingAllocator::open(const Backing& backing, AddressMap& map, const Options& options) {
    OwnerLock::prepare();
    backing_ = backing;
    options_ = options;
    spans_.open(map);
    map_ = &map;
    life_.fetch_add(1, std::memory_order_relaxed);
    no_place_.store(false, std::memory_order_relaxed);
    open_now_.store(true, std::memory_order_release);
}

// Memory for `attempt`, which is tried with the lock held, until it succeeds. `need`: what it takes of a segment at
// most.
template <typename Attempt>
bool CachingAllocator::find_memory(std::uint64_t need, Attempt attempt, Denied* denied) {
    {
        LockGuard lock(mutex_);
        if (attempt(Segments::Place::proper)) return true;
    }
    return find_more_memory(need, attempt, denied);
}

// Where there is room for what would be taken next, threads take segments at the same time: a driver that is slow for
// one holds up no other. Whoever needs less than what will be left of one that is under way waits for that one, so that
// a crowd doesn't take a segment each. False: there is more to it, or `refused` bytes were denied.
template <typename Attempt>
bool CachingAllocator::grow_beside_others(std::uint64_t need, Attempt attempt, std::uint64_t* refused, Denied* denied) {
    if (options_.preallocate) return false;
    const bool huge = GrowthPolicy::huge(need);
    for (;;) {
        if (short_of_room_.load(std::memory_order_relaxed)) return false;
        const std::uint64_t room = backing_.room(backing_.self);
        const std::uint32_t seen = grown_.now();
        std::uint64_t bytes = 0, spare = 0;
        {
            LockGuard lock(mutex_);
            if (attempt(Segments::Place::proper)) return true;
            if (!huge && taking_spare_ >= need) {
                taking_spare_ -= need;
            } else {
                const std::uint64_t held = segments_.bytes() + taking_bytes_, soon = taking_bytes_ - taking_spare_;
                const std::uint64_t wanted =
                    huge ? GrowthPolicy::least(need) : GrowthPolicy::next(need, held, last_segment_, room);
                bytes = GrowthPolicy::within(enough(saturated_sum(soon, need), huge, room, held), held, wanted, need);
                if (!bytes || bytes > room) return false;
                spare = huge ? 0 : bytes - need;
                taking_++, taking_bytes_ += bytes, taking_spare_ += spare;
                looking = {this, true, false, bytes, spare};
            }
        }
        if (!bytes) {
            grown_.wait(seen);
            continue;
        }
        const bool added = add_segment(bytes, huge, denied, [&] { return attempt(Segments::Place::any); });
        end_taking();
        if (!added) *refused = bytes;
        return added;
    }
}

void CachingAllocator::end_taking() {
    const Looking ended = looking;
    looking = {};
    {
        LockGuard lock(mutex_);
        taking_--, taking_bytes_ -= ended.bytes, taking_spare_ -= std::min(taking_spare_, ended.spare);
    }
    grown_.happened();
}

void CachingAllocator::leave() {
    if (looking.for_memory_of == this) forget_looking();
}

// Of a thread that looks for memory anew.
void CachingAllocator::forget_looking() {
    if (looking.takes) end_taking();
    if (looking.is_short) short_of_room_.fetch_sub(1, std::memory_order_relaxed);
    looking = {};
}

// Until as many segments as are being taken now have come, or been refused.
void CachingAllocator::await_growth() {
    for (std::uint64_t most = ~0ull; most; most--) {
        const std::uint32_t seen = grown_.now();
        {
            LockGuard lock(mutex_);
            most = std::min(most, taking_ + 1);
            if (!taking_ || most == 1) return;
        }
        grown_.wait(seen);
    }
}

// What the GPU has come past, a new segment, and in the end everything that is kept for later. Where more than enough
// would be held then, first what is free in huge segments, those that are idle exchanged for one that fits.
// Not inline: what is found at once is not to pay for it.
template <typename Attempt>
[[gnu::noinline]] bool CachingAllocator::find_more_memory(std::uint64_t need, Attempt attempt, Denied* denied) {
    Segments::Place place = Segments::Place::proper;
    const auto tried = [&] {
        LockGuard lock(mutex_);
        return attempt(place);
    };
    const DisableCancellation uncancelled;  // the driver may be asked
    if (looking.for_memory_of) looking.for_memory_of->forget_looking();
    if (reuse_deferred(false, need > SizeClass::kMax) && tried()) return true;
    std::uint64_t refused = 0;
    if (grow_beside_others(need, attempt, &refused, denied)) return true;
    if (refused && no_use(*denied)) return false;

    short_of_room_.fetch_add(1, std::memory_order_relaxed);
    looking = {this, false, true};
    const bool found = find_where_short(need, attempt, refused, denied);
    short_of_room_.fetch_sub(1, std::memory_order_relaxed);
    looking = {};
    return found;
}

// One thread at a time. `refused` bytes have been denied already.
template <typename Attempt>
bool CachingAllocator::find_where_short(std::uint64_t need, Attempt attempt, std::uint64_t refused, Denied* denied) {
    Segments::Place place = Segments::Place::proper;
    const auto tried = [&] {
        LockGuard lock(mutex_);
        return attempt(place);
    };
    LockGuard growing(growing_);
    if (tried()) return true;  // somebody else has grown meanwhile
    const bool huge = GrowthPolicy::huge(need) && !options_.preallocate;
    const std::uint64_t room = backing_.room(backing_.self);
    std::uint64_t wanted = GrowthPolicy::least(need), most = 0;
    {
        LockGuard lock(mutex_);
        if (!huge) wanted = GrowthPolicy::next(need, segments_.bytes(), last_segment_, room);
        most = enough(need, huge, room, segments_.bytes());
    }
    std::uint64_t bytes = GrowthPolicy::within(most, reserved(), wanted, need);
    if (!bytes) {
        place = Segments::Place::in_use;
        if (tried()) return true;
        const std::uint64_t fewest = GrowthPolicy::fewest(wanted, need);
        if (!exchange_idle(most, fewest, false)) {
            place = Segments::Place::any;
            if (tried()) return true;
            exchange_idle(most, fewest, true);
        }
        bytes = std::max(fewest, GrowthPolicy::within(most, reserved(), wanted, need));
    }
    place = Segments::Place::any;
    bool found = false;
    const auto serve = [&] { return found = attempt(place); };
    const auto after_denial = [&](std::uint64_t denied_bytes) {
        const std::uint64_t least = GrowthPolicy::least(need);
        if (denied->by == Denied::By::driver) return GrowthPolicy::after_refusal(denied_bytes, need);
        return denied_bytes > least ? least : 0;
    };
    if (refused && bytes >= refused) bytes = after_denial(refused);
    while (bytes) {
        if (add_segment(bytes, huge, denied, serve)) {
            if (bytes > room) count_short_of_memory(true);
            return true;
        }
        if (no_use(*denied)) return false;
        bytes = after_denial(bytes);
    }

    flush_caches(true);
    await_growth();
    if (!(found = tried()) && give_back_worn_out() + give_back_idle(~0ull, ~0ull) &&
        add_segment(GrowthPolicy::least(need), huge, denied, serve))
        take_rest(denied);
    count_short_of_memory(found);
    return found;
}

void CachingAllocator::count_short_of_memory(bool found) {
    LockGuard lock(mutex_);
    (found ? told_.retries : told_.ooms)++;
    moved(kAtOnce);
}

// With the lock held: what should be held at most once there is a block of `need` bytes too. Without huge segments
// nothing can be done about it.
std::uint64_t CachingAllocator::enough(std::uint64_t need, bool huge, std::uint64_t room, std::uint64_t held) const {
    if (!huge && !segments_.huge_bytes()) return ~0ull;
    const std::uint64_t out = total_traffic().out();
    const std::uint64_t live = std::max(told_.allocated.peak, saturated_sum(out, need));
    return std::min(GrowthPolicy::enough(live), saturated_sum(held, room));
}

// `serve` is called with the lock held, before anybody else can have of the segment: they could
// leave nothing of it. False if it fails, too.
template <typename Serve>
bool CachingAllocator::add_segment(std::uint64_t bytes, bool huge, Denied* denied, Serve serve) {
    // Drivers put memory of this size on a boundary of this size. From one that doesn't, more is asked.
    constexpr std::uint64_t kStep = AddressMap::kSegmentGranule;
    if (no_place_.load(std::memory_order_relaxed)) {
        denied->by = Denied::By::place;
        return false;
    }
    const bool unaligned = unaligned_.load(std::memory_order_relaxed);
    const std::uint64_t asked = unaligned ? std::max(bytes, bytes + kStep) : bytes;  // no less by an overflow
    const std::uint64_t life = life_.load(std::memory_order_relaxed);
    const std::uint64_t address = backing_.take(backing_.self, asked, denied);
    if (!address) return false;
    const std::uint64_t begin = (address + kStep - 1) / kStep * kStep, end = (address + asked) / kStep * kStep;
    if (end > AddressMap::kEnd) {
        backing_.give_back(backing_.self, address, asked);
        no_place_.store(true, std::memory_order_relaxed);
        denied->by = Denied::By::place;
        return false;
    }
    if (end - begin < bytes && !unaligned) {
        backing_.give_back(backing_.self, address, asked);
        unaligned_.store(true, std::memory_order_relaxed);
        return add_segment(bytes, huge, denied, serve);
    }
    {
        LockGuard lock(mutex_);
        // Its context may have ended since, and this be another one's allocator.
        const bool lives = life_.load(std::memory_order_relaxed) == life && is_open();
        Segment* segment = lives ? segments_.add(address, asked, begin, end, this, huge) : nullptr;
        const bool added = segment && map_->add(segment, begin, end);
        if (segment && !added) segments_.remove(segment);
        if (added) {
            reserved_.store(segments_.bytes(), std::memory_order_relaxed);
            last_segment_ = bytes;
            told_.segments_taken++;
            moved(kAtOnce);
            note_peaks();
            if (serve()) return true;
            denied->by = Denied::By::host;
            return false;
        }
    }
    backing_.give_back(backing_.self, address, asked);
    denied->by = Denied::By::host;
    return false;
}

bool CachingAllocator::add_segment(std::uint64_t bytes, Denied* denied) {
    return add_segment(bytes, false, denied, [] { return true; });
}

std::uint64_t CachingAllocator::allocate_large(std::uint64_t bytes, Denied* denied) {
    if (backing_.wanted(backing_.self)) help_out();
    const DeferCancellation uncancelled;
    if (bytes <= KeptBlocks::kMaxBytes) {
        if (const std::uint64_t address = from_kept(bytes)) return address;
        // Before the lock where it has been of no use. What is free is looked at again once this thread's own blocks
        // don't serve.
        if (deferred_first(bytes))
            if (const std::uint64_t address = from_deferred(bytes)) return address;
    }
    Changing changing(*this);
    {
        LockGuard lock(mutex_);
        if (const Block* block = take_large(bytes, Segments::Place::proper)) return block->address;
    }
    if (const std::uint64_t address = from_deferred(bytes)) return address;
    const Block* block = nullptr;
    const auto attempt = [&](Segments::Place place) {
        mutex_.is_held();
        return (block = take_large(bytes, place)) != nullptr;
    };
    return find_more_memory(SizeClass::rounded(bytes), attempt, denied) ? block->address : 0;
}

// With the lock held.
inline Block* CachingAllocator::take_large(std::uint64_t bytes, Segments::Place place) {
    const std::uint64_t size = SizeClass::rounded(bytes);
    Block* block = segments_.take(size, alignment_of(size), place);
    if (!block) return nullptr;
    block->requested = bytes;
    map_->set_new(block);
    traffic_.allocate(block->bytes, bytes);
    moved(block->bytes);
    note_peaks();
    return block;
}

std::uint64_t CachingAllocator::allocate_small(std::uint64_t bytes, Denied* denied) {
    const DisableCancellation uncancelled;
    if (backing_.wanted(backing_.self)) help_out();
    const Changing changing(*this);
    const unsigned size_class = SizeClass::of(bytes);
    const std::uint64_t size = SizeClass::bytes(size_class);
    ThreadCache* cache = own_cache();
    // Another allocator's turn has ended.
    if (const std::uint64_t address = from_magazine(bytes)) return address;
    SmallBlock block;
    const auto take = [&] {
        mutex_.is_held();
        if (!spans_.take(size_class, &block, 1)) return false;
        moved((1 + (cache ? refill(*cache, size_class) : 0)) * size);
        return true;
    };
    const auto take_new = [&](Segments::Place place) {
        mutex_.is_held();
        return take() || (spans_.make(size_class, this, place) && take());
    };
    {
        LockGuard lock(mutex_);
        take();
        note_peaks();
    }
    if (!block.address && reuse_deferred(false, false)) {
        if (const std::uint64_t address = from_magazine(bytes)) return address;
        LockGuard lock(mutex_);
        take();
    }
    // A span lies on a boundary, and what is free may not.
    const std::uint64_t need = SizeClass::span_bytes(size_class);
    if (!block.address && !find_memory(need, take_new, denied)) return 0;

    block.word->store(Span::kLive | static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
    if (cache && cache->lock.enter()) {
        cache->traffic.allocate(size, bytes);
        cache->lock.leave();
        return block.address;
    }
    LockGuard lock(mutex_);
    traffic_.allocate(size, bytes);
    return block.address;
}

CachingAllocator::Freed CachingAllocator::free_small_slowly(Span* span, std::uint64_t address, std::uint32_t requested,
                                                            bool quiet) {
    const DisableCancellation uncancelled;
    const Changing changing(*this);
    const unsigned size_class = span->size_class;
    const std::uint64_t size = SizeClass::bytes(size_class);
    const SmallBlock block{address, &span->word(span->index_of(address))};
    ThreadCache* cache = own_cache();
    if (quiet) {
        // Another allocator's turn may have ended, and there be room.
        if (cache && cache->lock.enter()) {
            Magazine& magazine = cache->magazines[size_class];
            const bool room = magazine.count < magazine.capacity;
            if (room) {
                magazine.slots[magazine.count++] = block;
                cache->traffic.free(size, requested);
            }
            cache->lock.leave();
            if (room) return Freed::done;
        }
        LockGuard lock(mutex_);
        moved(size);
        if (cache && make_room(*cache, size_class)) {
            Magazine& magazine = cache->magazines[size_class];
            magazine.slots[magazine.count++] = block;
            cache->traffic.free(size, requested);
        } else {
            spans_.give_back(address);
            traffic_.free(size, requested);
        }
        return Freed::done;
    }

    // A full batch goes to those that wait for the GPU, and the next one begins with this block.
    Batch* next = nullptr;
    bool first = false;
    {
        LockGuard lock(mutex_);
        first = !oldest_;
        traffic_.free(size, requested);
        moved(size);
        next = batches_.take();
    }
    if (next && cache && cache->lock.enter()) {
        Batch* full = take_open(*cache, &ThreadCache::open);
        next->add(block, size_class);
        cache->open = next;
        cache->deferred.add(size);
        cache->lock.leave();
        if (full) queue_full(full, first);
        return Freed::done;
    }
    Batch* full = nullptr;
    {
        LockGuard lock(mutex_);
        if (next) batches_.give_back(next);
        full = defer(block, size_class);
    }
    if (full) queue_full(full, first);
    return Freed::done;
}

CachingAllocator::Freed CachingAllocator::free_large(AddressMap& map, const AddressMap::Here& here,
                                                     std::uint64_t address, int* error) {
    const Segment* segment = map.segment(address);
    if (!segment) return Freed::not_ours;
    if (!here.block || here.begin != address) return Freed::invalid;
    return segment->owner->free_own_large(here.block, address, error);
}

CachingAllocator::Freed CachingAllocator::free_own_large(Block* block, std::uint64_t address, int* error) {
    bool quiet = false;
    if (!may_free(address, &quiet, error)) return Freed::failed;
    const DeferCancellation uncancelled;
    // From here on nobody else can reach the block.
    if (!map_->claim(block, address)) return Freed::invalid;
    const bool marked = block->marked;
    if (!marked && (quiet ? keep(block) : defer_own(block))) return Freed::done;
    Changing changing(*this);
    Batch* full = nullptr;
    bool first = false;
    Fence fence = 0;
    const bool alone = !quiet && !marked && worth_own_fence(*block);
    if (alone) {
        const DisableCancellation in_the_driver;
        quiet = backing_.past(backing_.self, address, &fence);
    }
    {
        LockGuard lock(mutex_);
        first = !oldest_ && !alone;
        traffic_.free(block->bytes, block->requested);
        moved(block->bytes);
        if (!marked && quiet) {
            segments_.give_back(block);
        } else if (!marked) {
            full = alone ? defer_alone(block, fence) : defer(block);
        }
    }
    if (full) queue_full(full, first);
    if (!marked) return Freed::done;

    const bool reusable = backing_.forget(backing_.self, address);
    {
        LockGuard lock(mutex_);
        if (!reusable) {
            segments_.abandon(block);
            abandoned_ += block->bytes;
        } else if (quiet) {
            segments_.give_back(block);
        } else {
            full = defer(block);
        }
    }
    if (full) queue_full(full, first);
    if (!reusable) give_back_worn_out();
    return Freed::done;
}

void CachingAllocator::abandon(std::uint64_t bytes, std::uint64_t requested) {
    const DisableCancellation uncancelled;
    LockGuard lock(mutex_);
    traffic_.free(bytes, requested);
    abandoned_ += bytes;
}

}  // namespace cuslice
