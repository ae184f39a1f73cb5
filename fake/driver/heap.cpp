// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace cuslice::fake {
namespace {

constexpr uint64_t kUnit = 512;

}  // namespace

void Heap::open(Address base, size_t size) {
    base_ = base;
    pages_ = size / kPageBytes;
    void* table = mmap(nullptr, pages_ * sizeof(Span*), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    span_of_page_ = table == MAP_FAILED ? nullptr : static_cast<Span**>(table);
    if (table == MAP_FAILED)
        pages_ = 0;
}

// Sizes up to 8 units have a class each; above, every doubling is cut in 8.
uint32_t Heap::class_of(uint64_t units) {
    if (units <= 8)
        return static_cast<uint32_t>(units);
    const auto shift = static_cast<uint32_t>(std::bit_width(units - 1) - 4);
    return shift * 8 + static_cast<uint32_t>((units - 1) >> shift) + 1;
}

uint64_t Heap::class_units(uint32_t size_class) {
    if (size_class <= 8)
        return size_class;
    const uint32_t shift = (size_class - 1) / 8 - 1;
    return static_cast<uint64_t>(size_class - shift * 8) << shift;
}

Block Heap::allocate(uint64_t bytes, BlockKind kind, uint32_t owner) {
    const uint32_t size_class = class_of((bytes + kUnit - 1) / kUnit);
    Span* span = with_room_[size_class];
    if (span == nullptr) [[unlikely]] {
        span = new_span(size_class, class_units(size_class) * kUnit);
        if (span == nullptr)
            return {};
    }
    uint32_t number = span->free;
    if (number != kNone) {
        span->free = span->records[number].owner;
    } else {
        number = span->fresh++;
    }
    if (++span->live == span->count) {
        with_room_[size_class] = span->next;
        span->next = nullptr;
    }
    BlockRecord& record = span->records[number];
    record.asked = bytes & 0xffffffffffff;
    record.id = ++last_id_;
    record.owner = owner;
    record.kind = kind;
    record.sync_memops = false;
    record.touched = false;
    record.shared = false;
    record.adopted = false;
    return block_of(*span, number);
}

void Heap::give_back(const Block& block) {
    Span* span = span_of_page_[(block.base - base_) / kPageBytes];
    if (span->live-- == span->count) {
        span->next = with_room_[span->size_class];
        with_room_[span->size_class] = span;
    }
    block.record->asked = 0;
    block.record->kind = BlockKind::Free;
    block.record->owner = span->free;
    span->free = static_cast<uint32_t>(block.record - span->records.get());
}

Block Heap::find(Address address) const {
    const uint64_t page = (address - base_) / kPageBytes;
    if (page >= pages_)
        return {};
    Span* span = span_of_page_[page];
    if (span == nullptr)
        return {};
    // Small spans are one page, so that 32 bits are enough and the division is cheap.
    const uint32_t number = span->count == 1 ? 0
                                             : static_cast<uint32_t>((address - span->base) / kUnit) /
                                                   static_cast<uint32_t>(span->stride / kUnit);
    if (number >= span->fresh)
        return {};
    const Block block = block_of(*span, number);
    return block.record->asked != 0 && address - block.base < block.record->asked ? block : Block{};
}

Heap::Span* Heap::new_span(uint32_t size_class, uint64_t stride) {
    const uint64_t pages = stride <= kLargestSmall ? 1 : (stride + kPageBytes - 1) / kPageBytes;
    uint64_t first = 0;
    if (!take_pages(pages, first)) {
        merge_free_spans();
        if (!take_pages(pages, first))
            return nullptr;
    }
    auto span = std::make_unique<Span>();
    span->base = base_ + first * kPageBytes;
    span->stride = stride;
    span->pages = static_cast<uint32_t>(pages);
    span->count = stride <= kLargestSmall ? static_cast<uint32_t>(kPageBytes / stride) : 1;
    span->size_class = size_class;
    span->records = std::make_unique<BlockRecord[]>(span->count);
    for (uint64_t page = first; page < first + pages; page++)
        span_of_page_[page] = span.get();
    // A class can get room again while this ran (merging), so it goes in front of what is there.
    span->next = with_room_[size_class];
    with_room_[size_class] = span.get();
    spans_.push_back(std::move(span));
    return spans_.back().get();
}

bool Heap::take_pages(uint64_t pages, uint64_t& first) {
    if (pages <= pages_ - unused_) {
        first = unused_;
        unused_ += pages;
        return true;
    }
    for (Run& run : runs_) {
        if (run.pages < pages)
            continue;
        first = run.first;
        run.first += pages;
        run.pages -= pages;
        return true;
    }
    return false;
}

void Heap::merge_free_spans() {
    with_room_ = {};
    std::vector<std::unique_ptr<Span>> kept;
    for (auto& span : spans_) {
        if (span->live > 0) {
            span->next = nullptr;
            if (span->live < span->count) {
                span->next = with_room_[span->size_class];
                with_room_[span->size_class] = span.get();
            }
            kept.push_back(std::move(span));
            continue;
        }
        const uint64_t first = (span->base - base_) / kPageBytes;
        std::fill_n(span_of_page_ + first, span->pages, nullptr);
        runs_.push_back({first, span->pages});
    }
    spans_ = std::move(kept);
    std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
    std::vector<Run> merged;
    for (const Run& run : runs_) {
        if (run.pages == 0)
            continue;
        if (!merged.empty() && merged.back().first + merged.back().pages == run.first) {
            merged.back().pages += run.pages;
        } else {
            merged.push_back(run);
        }
    }
    runs_ = std::move(merged);
}

}  // namespace cuslice::fake
