// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/allocator/block.h"
#include "policy/allocator/growth.h"
#include "policy/allocator/page_map.h"
#include "policy/allocator/span.h"

namespace cuslice {

// Maps addresses to segments and to blocks that begin there, for all allocators of the process. Readable at any time.
class AddressMap {
  public:
    static constexpr uint64_t kSegmentGranule = GrowthPolicy::kGranule;
    // Segments end here at the latest. On x86-64 and arm64 most processes' addresses do.
    static constexpr uint64_t kEnd = PageMap<kSegmentGranule>::kEnd;

    // Content of a granule of 64 KiB: the span that it is part of, or the one used block that begins in it, and
    // where. (A used block is larger than a granule, so no second one can.)
    struct Here {
        Span* span = nullptr;
        Block* block = nullptr;
        uint64_t begin = 0;  // means nothing where there is no block
    };
    Here at(uint64_t address) const { return here(entry_at(address), address); }
    // The same in two steps: for a free, which mostly ends with the span.
    using Entry = uintptr_t;
    Entry entry_at(uint64_t address) const { return blocks_.at(address); }
    static Span* span_of(Entry entry) {
        if (!(entry & 1))
            return nullptr;
        auto* const span = reinterpret_cast<Span*>(entry - 1);
        if (!span)
            __builtin_unreachable();  // so that nobody asks twice which of the two it is
        return span;
    }
    static Here here(Entry entry, uint64_t address) {
        if (Span* span = span_of(entry))
            return {span, nullptr, 0};
        return beside_spans(entry, address);
    }
    static Here beside_spans(Entry entry, uint64_t address) {
        const uint64_t granule = address / SizeClass::kGranule * SizeClass::kGranule;
        return {nullptr, reinterpret_cast<Block*>(entry << kUnitBits >> kUnitBits),
                granule + (entry >> kUnitShift) * SizeClass::kUnit};
    }
    // The used block that an address is in, if it is in one: otherwise none, or one that ends before the address. At
    // most 34 looks.
    Here around(uint64_t address) const {
        const uint64_t first = address / kSegmentGranule * kSegmentGranule;
        Here here = at(address);
        if (here.block && here.begin <= address)
            return here;
        for (uint64_t granule = address / SizeClass::kGranule * SizeClass::kGranule; granule > first;) {
            if (here.span)
                return {};
            granule -= SizeClass::kGranule;
            here = at(granule);
            if (here.block)
                return here;
        }
        const uint64_t begin = over_.at(first);
        here = at(begin);
        return here.begin == begin ? here : Here{};
    }
    Segment* segment(uint64_t address) const { return reinterpret_cast<Segment*>(segments_.at(address)); }

    // False if a range that begins in a segment is not within one block of the program's, which reaches as far as its
    // size was rounded up.
    bool holds(uint64_t address, uint64_t bytes) const {
        if (!segment(address))
            return true;
        if (Span* span = at(address).span) {
            const uint32_t index = span->index_of(address);
            if (index == Span::kNone || !(span->word(index).load(std::memory_order_relaxed) & Span::kLive))
                return false;
            return bytes <= SizeClass::bytes(span->size_class) - (address - span->address_of(index));
        }
        const Here here = around(address);
        if (!here.block)
            return false;
        const uint64_t before = address - here.begin, size = here.block->bytes;
        return before < size && bytes <= size - before;
    }

    // A segment's own part of the addresses, in whole kSegmentGranule. False if the kernel gives no memory.
    bool add(Segment* segment, uint64_t begin, uint64_t end) {
        if (!blocks_.cover(begin, end) || !segments_.cover(begin, end) || !over_.cover(begin, end))
            return false;
        for (uint64_t at = begin; at < end; at += kSegmentGranule)
            segments_.set(at, reinterpret_cast<uintptr_t>(segment));
        return true;
    }
    void remove(uint64_t begin, uint64_t end) {
        for (uint64_t at = begin; at < end; at += kSegmentGranule)
            segments_.set(at, 0);
    }

    // A block's entry says in its uppermost bits, which no pointer uses, in which unit of the granule it begins.
    void set(const Block* block) { blocks_.set(block->address, entry_of(block, block->address)); }
    // The same of a block that nobody had before: it is noted wherever it reaches over the beginning of 2 MiB. A note
    // that is there since it was last used is not made again.
    void set_new(Block* block) {
        const uint64_t end = block->address + block->bytes;
        const uint64_t next = (block->address / kSegmentGranule + 1) * kSegmentGranule;
        if (next < end && block->noted < block->bytes) {
            over_.set_all(next, end, block->address);
            block->noted = block->bytes;
        }
        set(block);
    }
    void set(Span* span) {
        for (uint64_t at = 0; at < SizeClass::span_bytes(span->size_class); at += SizeClass::kGranule)
            blocks_.set(span->address + at, reinterpret_cast<uintptr_t>(span) | 1);
    }
    void clear(uint64_t address, uint64_t bytes) {
        for (uint64_t at = 0; at < bytes; at += SizeClass::kGranule)
            blocks_.set(address + at, 0);
    }
    void clear(const Block* block) { blocks_.set(block->address, 0); }
    // Only one thread at a time can take a used block off the map: false if another one did, or it begins elsewhere.
    bool claim(const Block* block, uint64_t address) { return blocks_.clear_if(address, entry_of(block, address)); }

  private:
    static constexpr unsigned kUnitBits = 7, kUnitShift = 64 - kUnitBits;
    static_assert(SizeClass::kGranule / SizeClass::kUnit == 1 << kUnitBits);
    static uintptr_t entry_of(const Block* block, uint64_t address) {
        const uint64_t unit = address % SizeClass::kGranule / SizeClass::kUnit;
        return reinterpret_cast<uintptr_t>(block) | unit << kUnitShift;
    }

    PageMap<SizeClass::kGranule> blocks_;
    PageMap<kSegmentGranule> segments_;
    // Where the last block begins that reached over the beginning.
    PageMap<kSegmentGranule> over_;
};

}  // namespace cuslice
