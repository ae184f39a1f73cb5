// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

namespace cuslice {

// Bytes that rise and fall. The words are PyTorch's.
struct Tally {
    uint64_t current = 0, peak = 0, allocated = 0, freed = 0;

    void add(const Tally& other) {
        current += other.current, peak += other.peak, allocated += other.allocated, freed += other.freed;
    }
};

// Figures of an allocator, in bytes and counts.
//
// The peaks of `allocated`, `requested` and `active` may be too low by what threads serve from their own store, as each
// tells only when it needs more: what fits into its magazines, and of blocks above 64 KiB what it keeps, 4 MiB. And by
// what other threads free just when a peak is noted.
struct Statistics {
    Tally allocated;  // blocks that the program holds, as they are rounded
    Tally requested;  // the same, as the program asked for them
    Tally active;     // blocks that the program holds, or that a GPU may still be using
    Tally reserved;   // segments
    uint64_t allocations = 0, frees = 0;
    uint64_t segments = 0, segments_taken = 0, segments_given_back = 0;
    uint64_t retries = 0;  // allocations that succeeded only after cached memory had been given back
    uint64_t ooms = 0;
    uint64_t syncs = 0;         // waits for the GPU before a block could be used again
    uint64_t largest_free = 0;  // bytes in one piece; within 3%
    uint64_t own_memory = 0;    // bytes of the host's that the allocator's records take

    // All that there was is given back.
    void end() {
        for (Tally* tally : {&allocated, &requested, &active, &reserved}) {
            tally->freed = tally->allocated;
            tally->current = 0;
        }
        segments = largest_free = own_memory = 0;
    }

    // Adds another allocator's figures. Peaks need not coincide: their sum is the most that there can have been.
    void add(const Statistics& other) {
        allocated.add(other.allocated), requested.add(other.requested);
        active.add(other.active), reserved.add(other.reserved);
        allocations += other.allocations, frees += other.frees;
        segments += other.segments;
        segments_taken += other.segments_taken, segments_given_back += other.segments_given_back;
        retries += other.retries, ooms += other.ooms, syncs += other.syncs;
        largest_free = std::max(largest_free, other.largest_free);
        own_memory += other.own_memory;
    }
    void take_peaks(const Statistics& other) {
        allocated.peak = other.allocated.peak, requested.peak = other.requested.peak;
        active.peak = other.active.peak, reserved.peak = other.reserved.peak;
    }
    // The peaks of one time and another.
    void raise_peaks(const Statistics& other) {
        allocated.peak = std::max(allocated.peak, other.allocated.peak);
        requested.peak = std::max(requested.peak, other.requested.peak);
        active.peak = std::max(active.peak, other.active.peak);
        reserved.peak = std::max(reserved.peak, other.reserved.peak);
    }
};

}  // namespace cuslice
