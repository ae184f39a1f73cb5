// SPDX-License-Identifier: Apache-2.0
// The functions of SegmentSupply, for the .cpp that has it made for a backing.
#pragma once
#include <algorithm>

#include "policy/allocator/segment_supply.h"
#include "policy/base/cancellation.h"

namespace cuslice {

template <Backing B>
constinit thread_local typename SegmentSupply<B>::Looking SegmentSupply<B>::looking_{};

template <Backing B>
auto SegmentSupply<B>::grow_beside_others(Request* request, const Live& live, uint64_t* refused,
                                          AllocationError* denied) -> Grown {
    if (preallocate_ || short_of_room_.load(std::memory_order_relaxed))
        return Grown::no_room;
    const uint64_t room = backing_.room();
    const uint32_t seen = grown_.now();
    SegmentHeap::Taking taking;
    switch (heap_.next(request, live, room, &taking)) {
        case SegmentHeap::Next::served:
            return Grown::served;
        case SegmentHeap::Next::nothing:
            return Grown::no_room;
        case SegmentHeap::Next::wait:
            grown_.wait(seen);
            return Grown::again;
        case SegmentHeap::Next::take:
            break;
    }
    looking_ = {this, true, false, taking};
    const bool added = add_segment(taking.bytes, GrowthPolicy::huge(request->need), request, denied);
    end_taking();
    if (!added)
        *refused = taking.bytes;
    return added ? Grown::served : Grown::no_room;
}

template <Backing B>
void SegmentSupply<B>::end_taking() {
    const SegmentHeap::Taking ended = looking_.taking;
    looking_ = {};
    heap_.end_taking(ended);
    grown_.happened();
}

template <Backing B>
void SegmentSupply<B>::begin_short() {
    short_of_room_.fetch_add(1, std::memory_order_relaxed);
    looking_ = {this, false, true, {}};
}

template <Backing B>
void SegmentSupply<B>::end_short() {
    short_of_room_.fetch_sub(1, std::memory_order_relaxed);
    looking_ = {};
}

template <Backing B>
void SegmentSupply<B>::leave() {
    if (looking_.for_memory_of != this)
        return;
    if (looking_.takes)
        end_taking();
    if (looking_.is_short)
        end_short();
    looking_ = {};
}

template <Backing B>
void SegmentSupply<B>::forget_earlier() {
    if (looking_.for_memory_of)
        looking_.for_memory_of->leave();
}

// Until as many segments as are being taken now have come, or been refused.
template <Backing B>
void SegmentSupply<B>::await_growth() {
    for (uint64_t most = ~0ull; most; most--) {
        const uint32_t seen = grown_.now();
        const uint64_t taking = heap_.taking();
        most = std::min(most, taking + 1);
        if (!taking || most == 1)
            return;
        grown_.wait(seen);
    }
}

template <Backing B>
auto SegmentSupply<B>::find_where_short(Request* request, const Live& live, uint64_t refused, AllocationError* denied)
    -> Found {
    using Place = SegmentHeap::Place;
    if (preallocate_ && heap_.is_badly_cut(*request))
        cut_anew(*request);
    if (heap_.take(request, Place::proper))
        return Found::served;  // somebody else has grown meanwhile
    const uint64_t need = request->need, room = backing_.room();
    const SegmentHeap::Plan plan = heap_.plan(*request, live, room);
    uint64_t bytes = GrowthPolicy::within(plan.most, heap_.held(), plan.wanted, need);
    if (!bytes) {
        if (heap_.take(request, Place::in_use))
            return Found::served;
        const uint64_t fewest = GrowthPolicy::fewest(plan.wanted, need);
        if (!exchange_idle(live, plan.most, fewest, false)) {
            if (heap_.take(request, Place::any))
                return Found::served;
            exchange_idle(live, plan.most, fewest, true);
        }
        bytes = std::max(fewest, GrowthPolicy::within(plan.most, heap_.held(), plan.wanted, need));
    }
    const auto after_denial = [&](uint64_t denied_bytes) {
        const uint64_t least = GrowthPolicy::least(need);
        if (denied->by == AllocationError::By::driver)
            return GrowthPolicy::after_refusal(denied_bytes, need);
        return denied_bytes > least ? least : 0;
    };
    if (refused && bytes >= refused)
        bytes = after_denial(refused);
    while (bytes) {
        if (add_segment(bytes, heap_.huge(*request), request, denied)) {
            if (bytes > room)
                heap_.count_short_of_memory(true);
            return Found::served;
        }
        if (denied->for_any_size())
            return Found::failed;
        bytes = after_denial(bytes);
    }
    return Found::nothing;
}

template <Backing B>
bool SegmentSupply<B>::find_at_last(Request* request, AllocationError* denied) {
    await_growth();
    bool found = heap_.take(request, SegmentHeap::Place::any);
    if (!found && give_back_worn_out() + give_back_idle(~0ull, ~0ull)) {
        found = add_segment(GrowthPolicy::least(request->need), heap_.huge(*request), request, denied);
        if (found)
            take_rest(denied);
    }
    heap_.count_short_of_memory(found);
    return found;
}

// A segment for the request, or for whoever comes if there is none. False if it can't be served, too.
template <Backing B>
bool SegmentSupply<B>::add_segment(uint64_t bytes, bool huge, Request* request, AllocationError* denied) {
    // Drivers put memory of this size on a boundary of this size. From one that doesn't, more is asked.
    constexpr uint64_t kStep = AddressMap::kSegmentGranule;
    if (no_place_.load(std::memory_order_relaxed)) {
        denied->by = AllocationError::By::place;
        return false;
    }
    const bool unaligned = unaligned_.load(std::memory_order_relaxed);
    const uint64_t asked = unaligned ? std::max(bytes, bytes + kStep) : bytes;  // no less by an overflow
    const uint64_t life = life_.number();
    const uint64_t address = backing_.take(asked, denied);
    if (!address)
        return false;
    const uint64_t begin = (address + kStep - 1) / kStep * kStep, end = (address + asked) / kStep * kStep;
    if (end > AddressMap::kEnd) {
        backing_.give_back(address, asked);
        no_place_.store(true, std::memory_order_relaxed);
        denied->by = AllocationError::By::place;
        return false;
    }
    if (end - begin < bytes && !unaligned) {
        backing_.give_back(address, asked);
        unaligned_.store(true, std::memory_order_relaxed);
        return add_segment(bytes, huge, request, denied);
    }
    const SegmentHeap::Added added = heap_.add({address, asked, begin, end, huge}, bytes, life, request);
    if (added == SegmentHeap::Added::no)
        backing_.give_back(address, asked);
    if (added == SegmentHeap::Added::served || (added == SegmentHeap::Added::yes && !request))
        return true;
    denied->by = AllocationError::By::host;
    return false;
}

template <Backing B>
uint64_t SegmentSupply<B>::give_back(const SegmentHeap::Detached& detached) {
    const Segment& segment = *detached.segment;
    return heap_.end_detached(detached, backing_.give_back(segment.address, segment.bytes));
}

template <Backing B>
uint64_t SegmentSupply<B>::give_back_idle(uint64_t bytes, uint64_t since, bool huge_only) {
    if (backing_.capturing())
        return 0;
    uint64_t given = 0;
    while (given < bytes) {
        const SegmentHeap::Detached detached = heap_.detach_idle(bytes - given, since, huge_only);
        const uint64_t now = detached.segment ? give_back(detached) : 0;
        if (!now)
            break;
        given += now;
    }
    return given;
}

template <Backing B>
uint64_t SegmentSupply<B>::give_back_worn_out() {
    if (backing_.capturing())
        return 0;
    const DisableCancellation uncancelled;
    for (uint64_t given = 0;;) {
        const SegmentHeap::Detached detached = heap_.detach_worn_out();
        const uint64_t now = detached.segment ? give_back(detached) : 0;
        if (!now)
            return given;
        given += now;
    }
}

// Gives idle huge segments back, so that no more than `most` is held with `bytes` more. Not if that can't be had so, or
// has been too often; but if there is `no_other_way`, as many of all that are idle as it takes.
template <Backing B>
bool SegmentSupply<B>::exchange_idle(const Live& live, uint64_t most, uint64_t bytes, bool no_other_way) {
    const uint64_t held = heap_.held(), left = most > bytes ? most - bytes : 0;
    if (held <= left)
        return true;
    if (!no_other_way && !heap_.may_exchange(held - left, live))
        return false;
    const uint64_t given = give_back_idle(held - left, ~0ull, !no_other_way);
    if (!no_other_way)
        heap_.note_exchanged(given);
    return given >= held - left;
}

// So that idle segments have room for as many blocks of the request's size as their bytes allow. In a job a sibling may
// be granted what is given back before it is taken again: it can be had only once.
template <Backing B>
void SegmentSupply<B>::cut_anew(const Request& request) {
    const uint64_t given = give_back_idle(~0ull, ~0ull);
    if (!given)
        return;  // a stream is captured, and the driver can't free without ending that
    heap_.note_exchanged(given);
    AllocationError denied;
    take_rest(&denied, GrowthPolicy::least(request.need));
}

// In pieces of a half, a quarter, an eighth and the rest: one that is idle can then be given back, should the driver
// need room for itself.
template <Backing B>
bool SegmentSupply<B>::take_rest(AllocationError* denied, uint64_t unit) {
    if (!preallocate_)
        return true;
    constexpr uint64_t kSmall = 64 << 20;
    const uint64_t all = backing_.room() / GrowthPolicy::kGranule * GrowthPolicy::kGranule;
    uint64_t left = all;
    while (left) {
        const bool last = left <= kSmall || left <= all / 8;
        uint64_t bytes = last ? left : std::min(left, (left / 2 + unit - 1) / unit * unit);
        while (!add_segment(bytes, false, nullptr, denied)) {
            if (denied->by != AllocationError::By::driver)
                return left < all;
            bytes = GrowthPolicy::after_refusal(bytes, 1);
            if (!bytes)
                return left < all;
        }
        left -= std::min(left, bytes);
    }
    return true;
}

}  // namespace cuslice
