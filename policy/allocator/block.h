// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/relaxed.h"

namespace cuslice {

struct Block;

// Owner of segments, spans and thread caches: a CachingAllocator, whatever its memory is from.
class BlockOwner {
  protected:
    BlockOwner() = default;
    ~BlockOwner() = default;
};

// Memory that the backing gave in one piece. It is given back in one piece, once nothing in it is used.
struct Segment {
    uint64_t address = 0, bytes = 0;  // as the backing knows it
    uint64_t idle_since = 0;          // nanoseconds of the backing's clock; 0: not seen idle yet
    BlockOwner* owner = nullptr;
    uint64_t begin = 0, end = 0;  // the part that is cut into blocks
    uint64_t abandoned = 0;       // bytes
    bool huge = false;            // taken for one huge block
    Block* first = nullptr;
    Segment *previous = nullptr, *next = nullptr;
};

// A piece of a segment. A segment is its blocks, without gaps, each knowing its neighbours. In cache lines of its own,
// as neighbours are mostly those of different threads.
struct alignas(64) Block {
    // abandoned: the program's no more, and nobody's again.
    enum class State : uint8_t { free, used, span, deferred, abandoned };

    uint64_t address = 0;
    Relaxed<uint64_t> bytes;
    Relaxed<uint64_t> requested;  // bytes that the program asked for, of a used one; 0: a thread keeps it
    Block *before = nullptr, *after = nullptr;
    Block *previous = nullptr, *next = nullptr;  // in its bin while it is free
    Segment* segment = nullptr;
    uint64_t noted = 0;  // bytes from its beginning that AddressMap has noted as this block's
    Relaxed<State> state = State::free;
    bool marked = false;  // there is more to know of it, elsewhere
    uint16_t bin = 0;     // of Bins, for a block of `binned` bytes
    uint64_t binned = 0;  // when it was last in one

    bool whole_segment() const { return !before && !after; }
};

}  // namespace cuslice
