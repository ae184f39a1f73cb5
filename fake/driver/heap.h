// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocates the addresses of one GPU. Blocks up to 256 KiB are cut from spans of one 2 MiB page and one size; larger
// ones get a span of whole pages each. A table with an entry per page leads from any address to its span, so a look-up
// costs the same with one block as with a million, from the base or from the middle. Freed blocks are reused last in,
// first out. Addresses are plentiful (memory isn't: the books count that), so spans keep their size until all
// addresses have been used once; only then are free ones merged.
//
// Nothing here is thread-safe: the GPU's lock is held.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fake/driver/memory_space.h"

namespace cuslice::fake {

/// Purpose of a block, which decides which function may free it. Kinds from Imported on are not charged by themselves.
enum class BlockKind : uint8_t { Free, Device, Managed, Pool, Array, Global, Physical, Imported, Graph };

/// Record of a block while it lives.
struct BlockRecord {
    uint64_t asked : 48 = 0;  // bytes the program asked for; 0: the block is free
    BlockKind kind : 8 = BlockKind::Free;
    bool sync_memops : 1 = false;
    bool touched : 1 = false;  // something was written: its contents are discarded when it is freed
    bool shared : 1 = false;   // other processes can hold it, or it is theirs: Gpu::shared
    bool adopted : 1 = false;  // its contents are in a file of their own
    uint32_t id = 0;           // unique on its GPU, for CU_POINTER_ATTRIBUTE_BUFFER_ID
    uint32_t owner = 0;        // whose it is: a context's or pool's number; of a free block the next free one
};
static_assert(sizeof(BlockRecord) == 16, "a million live blocks: every byte is a megabyte");

/// A live block as a look-up finds it.
struct Block {
    Address base = 0;
    BlockRecord* record = nullptr;
    explicit operator bool() const { return record != nullptr; }
};

/// Bytes that are charged for a block: the driver rounds to 512.
constexpr uint64_t rounded(uint64_t bytes) { return (bytes + 511) & ~uint64_t{511}; }

class Heap {
  public:
    void open(Address base, size_t size);

    /// A new block, or an empty one if the addresses are used up. bytes > 0.
    Block allocate(uint64_t bytes, BlockKind kind, uint32_t owner);
    /// Frees a block that find() or at() returned.
    void give_back(const Block& block);

    /// The live block that contains the address.
    Block find(Address address) const;
    /// The live block that starts at the address.
    Block at(Address address) const {
        const Block block = find(address);
        return block && block.base == address ? block : Block{};
    }

    /// Calls f(block) for every live block; f may free it.
    template <typename F>
    void each(F&& f) {
        for (size_t i = 0; i < spans_.size(); i++) {
            Span& span = *spans_[i];
            for (uint32_t n = 0; n < span.fresh; n++) {
                if (span.records[n].asked != 0)
                    f(Block{span.base + n * span.stride, &span.records[n]});
            }
        }
    }

  private:
    static constexpr uint32_t kNone = ~0U;
    static constexpr size_t kClasses = 512;
    static constexpr uint64_t kLargestSmall = uint64_t{256} << 10;

    struct Span {
        Address base = 0;
        uint64_t stride = 0;  // bytes from one block to the next
        uint32_t pages = 0;
        uint32_t count = 0;     // blocks it has room for
        uint32_t fresh = 0;     // blocks [0, fresh) have been used
        uint32_t free = kNone;  // first of the freed blocks
        uint32_t live = 0;
        uint32_t size_class = 0;
        Span* next = nullptr;  // in the list of spans of its class with a free block
        std::unique_ptr<BlockRecord[]> records;
    };
    struct Run {
        uint64_t first, pages;
    };

    static uint32_t class_of(uint64_t units);
    static uint64_t class_units(uint32_t size_class);
    Span* new_span(uint32_t size_class, uint64_t stride);
    bool take_pages(uint64_t pages, uint64_t& first);
    void merge_free_spans();
    Block block_of(Span& span, uint32_t number) const {
        return {span.base + number * span.stride, &span.records[number]};
    }

    Address base_ = 0;
    uint64_t pages_ = 0;
    uint64_t unused_ = 0;  // pages [unused_, pages_) have never been in a span
    Span** span_of_page_ = nullptr;
    std::array<Span*, kClasses> with_room_{};
    std::vector<std::unique_ptr<Span>> spans_;
    std::vector<Run> runs_;  // merged free pages
    uint32_t last_id_ = 0;
};

}  // namespace cuslice::fake
