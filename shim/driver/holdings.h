// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "shim/log.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

// Holders of a GPU's memory in this process, at one moment.
struct Holdings {
    struct Part {
        std::string_view who;  // "cuMemAlloc"
        uint64_t bytes, blocks;
    };
    static constexpr unsigned kMost = 8;
    Part parts[kMost] = {};
    unsigned count = 0;

    // A part of nothing is none.
    void add(std::string_view who, uint64_t bytes, uint64_t blocks);
    void sort();  // the largest first
};

// Looks at all records of allocations: not for what is done often.
Holdings holdings_of(const VirtualGpu& gpu);

// "cuMemAlloc 512.0 MiB in 3 blocks, exported 2.0 MiB in 1 block", or "nothing yet".
void append_holdings(LogLine& line, const Holdings& holdings);

// From now on, what each GPU's memory is held by is noted whenever more of it is held than at the last note, by a 64th
// or more; before memory is given back, and when an allocation is refused.
void watch_holdings();
// Notes it now, for all GPUs, if it is watched. Takes locks from `physical_memory` on (policy/base/lock_rank.h).
// Thread-safe: of two threads at once one does it.
void note_holdings();
// "; what held most: " and the holdings noted at the peak, the largest first; nothing if nothing was noted.
void append_most_held(LogLine& line, const VirtualGpu& gpu);

}  // namespace cuslice
