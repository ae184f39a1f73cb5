#pragma once
#include <cstdint>

namespace cuslice {

// Bytes that rise and fall. The words are PyTorch's.
struct Tally {
    std::uint64_t current = 0, peak = 0, allocated = 0, freed = 0;
};

// What an allocator has done, in bytes and counts.
//
// The peaks of `allocated`, `requested` and `active` are exact for blocks above 64 KiB; of smaller ones each thread
// tells only when it needs new ones, so that they may be too low by what fits into its magazines.
struct Statistics {
    Tally allocated;  // blocks that the program holds, as they are rounded
    Tally requested;  // the same, as the program asked for them
    Tally active;     // blocks that the program holds, or that a GPU may still be using
    Tally reserved;   // segments
    std::uint64_t allocations = 0, frees = 0;
    std::uint64_t segments = 0, segments_taken = 0, segments_given_back = 0;
    std::uint64_t retries = 0;  // allocations that succeeded only after cached memory had been given back
    std::uint64_t ooms = 0;
    std::uint64_t syncs = 0;         // waits for the GPU before a block could be used again
    std::uint64_t largest_free = 0;  // bytes in one piece
    std::uint64_t own_memory = 0;    // bytes of the host's that the allocator's records take
};

}  // namespace cuslice
