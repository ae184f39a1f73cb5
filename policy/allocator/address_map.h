#pragma once
#include "policy/allocator/block.h"
#include "policy/allocator/growth.h"
#include "policy/allocator/page_map.h"
#include "policy/allocator/span.h"

namespace cuslice {

// Which segment an address is in, and which block begins there: of all allocators of the process. Readable at any time.
class AddressMap {
  public:
    static constexpr std::uint64_t kSegmentGranule = Growth::kGranule;

    // What a granule of 64 KiB knows: the span that it is part of, or the one used block that begins in it. (A used
    // block is larger than a granule, so no second one can.)
    struct Here {
        Span* span = nullptr;
        Block* block = nullptr;
    };
    Here at(std::uint64_t address) const {
        const auto entry = blocks_.at(address);
        if (entry & 1) return {reinterpret_cast<Span*>(entry - 1), nullptr};
        return {nullptr, reinterpret_cast<Block*>(entry)};
    }
    Segment* segment(std::uint64_t address) const { return reinterpret_cast<Segment*>(segments_.at(address)); }

    // A segment's own part of the addresses, in whole kSegmentGranule. False if the kernel gives no memory.
    bool add(Segment* segment, std::uint64_t begin, std::uint64_t end) {
        if (!blocks_.cover(begin, end) || !segments_.cover(begin, end)) return false;
        for (std::uint64_t at = begin; at < end; at += kSegmentGranule)
            segments_.set(at, reinterpret_cast<std::uintptr_t>(segment));
        return true;
    }
    void remove(std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t at = begin; at < end; at += kSegmentGranule) segments_.set(at, 0);
    }

    void set(Block* block) { blocks_.set(block->address, reinterpret_cast<std::uintptr_t>(block)); }
    void set(Span* span) {
        for (std::uint64_t at = 0; at < SizeClass::span_bytes(span->size_class); at += SizeClass::kGranule)
            blocks_.set(span->address + at, reinterpret_cast<std::uintptr_t>(span) | 1);
    }
    void clear(std::uint64_t address, std::uint64_t bytes) {
        for (std::uint64_t at = 0; at < bytes; at += SizeClass::kGranule) blocks_.set(address + at, 0);
    }
    void clear(const Block* block) { blocks_.set(block->address, 0); }

  private:
    PageMap<SizeClass::kGranule> blocks_;
    PageMap<kSegmentGranule> segments_;
};

}  // namespace cuslice
