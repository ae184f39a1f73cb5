// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/allocator/backing.h"
#include "policy/allocator/span.h"

namespace cuslice {

// Freed blocks that a GPU may still be using, until a fence has been passed.
struct Batch {
    static constexpr unsigned kMax = 124;
    static constexpr uint64_t kMaxBytes = 1 << 20;  // of a thread's small blocks

    Batch* next = nullptr;
    Fence fence = 0;  // 0: none could be made yet
    uint32_t count = 0;
    uint32_t classes = 0;  // a bit for each class of the small blocks, and kLarge
    uint64_t bytes = 0;
    uint64_t number = 0;  // in the order in which batches came to wait; 0: it doesn't yet
    // A small block, with its class in the bits that are 0 in every address, or a larger one's Block instead of the
    // word.
    struct Deferred {
        uint64_t address;
        uintptr_t word;
    };
    static constexpr uint32_t kLarge = 1u << 31;
    static_assert(SizeClass::kCount <= SizeClass::kUnit && SizeClass::kCount < 31);
    Deferred blocks[kMax];

    void add(const SmallBlock& block, unsigned size_class) {
        blocks[count++] = {block.address | size_class, reinterpret_cast<uintptr_t>(block.word)};
        classes |= 1u << size_class;
        bytes += SizeClass::bytes(size_class);
    }
    void add(Block* block) {
        blocks[count++] = {block->address, reinterpret_cast<uintptr_t>(block) | 1};
        classes |= kLarge;
        bytes += block->bytes;
    }
    void clear() { count = classes = 0, bytes = number = 0; }
    // In one of its blocks; it has one.
    uint64_t address() const { return blocks[0].address; }
    static Block* large(const Deferred& deferred) {
        return deferred.word & 1 ? reinterpret_cast<Block*>(deferred.word - 1) : nullptr;
    }
    static SmallBlock small(const Deferred& deferred) {
        return {deferred.address & ~(SizeClass::kUnit - 1), reinterpret_cast<std::atomic<uint32_t>*>(deferred.word)};
    }
    static unsigned size_class(const Deferred& small) { return small.address % SizeClass::kUnit; }
};

}  // namespace cuslice
