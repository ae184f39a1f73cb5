// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "policy/allocator/block.h"
#include "policy/allocator/size_class.h"

namespace cuslice {

// A block cut into equal small ones. Each of these has a word, which says whether the program holds it: freeing it is
// one compare-exchange, and a second free finds that it is free.
struct Span {
    // A word, if the small block is the program's: kLive, the bytes asked for, and kMarked if there is more to know of
    // it, elsewhere. Otherwise it is the next free one's number.
    static constexpr uint32_t kLive = 1u << 31, kMarked = 1u << 30, kRequested = kMarked - 1;
    static constexpr uint32_t kNone = kRequested;

    uint64_t address = 0;
    BlockOwner* owner = nullptr;
    Block* block = nullptr;
    Span *previous = nullptr, *next = nullptr;
    uint16_t size_class = 0;
    uint16_t count = 0, free_count = 0;
    uint16_t first_free = 0;
    // The class's, here where a free has to look anyhow.
    uint32_t block_bytes = 0, reciprocal = 0, word_bytes = 0;

    std::atomic<uint32_t>& word(uint32_t index) {
        char* const words = reinterpret_cast<char*>(this) + kHeader;
        return *reinterpret_cast<std::atomic<uint32_t>*>(words + size_t{index} * word_bytes);
    }
    uint64_t address_of(uint32_t index) const { return address + uint64_t{index} * block_bytes; }
    // The small block that contains the address, or kNone: a span may end with less than a block.
    uint32_t index_of(uint64_t inside) const {
        const uint32_t index =
            SizeClass::index(reciprocal, static_cast<uint32_t>((inside - address) / SizeClass::kUnit));
        return index < count ? index : kNone;
    }

    static constexpr uint64_t kHeader = 64, kLine = 64;  // bytes; of a cache line
    // Words lie apart, as two of them may be two threads': on 4 lines at least, for which a span has less than 1% of
    // its own bytes.
    static constexpr uint32_t word_bytes_of(unsigned size_class) {
        const uint64_t lines = SizeClass::span_bytes(size_class) > SizeClass::kGranule ? 8 : 4;
        const uint64_t most = std::bit_ceil(lines * kLine / SizeClass::blocks(size_class));
        return static_cast<uint32_t>(std::clamp<uint64_t>(most, sizeof(uint32_t), kLine));
    }
    static constexpr uint64_t record_bytes(unsigned size_class) {
        const uint64_t bytes = kHeader + uint64_t{SizeClass::blocks(size_class)} * word_bytes_of(size_class);
        return (bytes + kLine - 1) / kLine * kLine;  // two spans' words may be two threads', too
    }
};
static_assert(sizeof(Span) <= Span::kHeader);

// One small block, with its word at hand.
struct SmallBlock {
    uint64_t address = 0;
    std::atomic<uint32_t>* word = nullptr;
};

}  // namespace cuslice
