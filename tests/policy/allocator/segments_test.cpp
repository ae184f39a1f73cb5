// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/segments.h"

#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {

namespace {

constexpr uint64_t kBase = 1ull << 40;

struct Fixture {
    Segments segments;
    Segment* add(uint64_t at, uint64_t bytes) {
        return segments.add(kBase + at, bytes, kBase + at, kBase + at + bytes, nullptr);
    }
};

}  // namespace

TEST_CASE("blocks are cut best fit, and neighbours merge") {
    Fixture f;
    f.add(0, 16 * kMiB);
    Block* a = f.segments.take(kMiB);
    Block* b = f.segments.take(2 * kMiB);
    Block* c = f.segments.take(13 * kMiB);
    CHECK(a->address == kBase);
    f.segments.give_back(a);
    f.segments.give_back(b);
    // Best fit: the block comes from the smaller of the two holes.
    b = f.segments.take(2 * kMiB - 512);
    a = f.segments.take(kMiB);
    CHECK(a->address == kBase);
    CHECK(f.segments.largest_free() == 512);
    f.segments.give_back(b);
    Block* d = f.segments.take(2 * kMiB);
    CHECK(d->address == kBase + 14 * kMiB);
    f.segments.give_back(a);
    f.segments.give_back(c);
    CHECK_FALSE(Segments::idle(*f.segments.first()));
    f.segments.give_back(d);
    CHECK(Segments::idle(*f.segments.first()));
    f.segments.note_idle(77);
    f.segments.note_idle(88);
    CHECK(f.segments.first()->idle_since == 77);
    CHECK(f.segments.free_bytes() == 16 * kMiB);
    CHECK(f.segments.largest_free() == 16 * kMiB);
}

TEST_CASE("a block lies beside the smaller neighbour, or the segment's edge") {
    Fixture f;
    f.add(0, 16 * kMiB);
    Block* a = f.segments.take(3 * kMiB);
    Block* hole = f.segments.take(4 * kMiB);
    Block* b = f.segments.take(2 * kMiB);
    CHECK(a->address == kBase);
    CHECK(hole->address == kBase + 12 * kMiB);  // at the other edge
    CHECK(b->address == kBase + 3 * kMiB);      // beside the smaller of both
    f.segments.give_back(hole);
    Block* rest = f.segments.take(11 * kMiB - 512);
    CHECK(rest->address == kBase + 5 * kMiB + 512);
    CHECK(f.segments.largest_free() == 512);
}

TEST_CASE("an aligned block is found where there is just room for it, at either end of what is free") {
    constexpr uint64_t kBoundary = 64 << 10, kUnit = SizeClass::kUnit;
    Fixture f;
    f.add(0, kMiB);
    Block* first = f.segments.take(kUnit);
    REQUIRE(first->address == kBase);
    CHECK_FALSE(f.segments.take(kMiB - kUnit, kBoundary));
    Block* all = f.segments.take(kMiB - kBoundary, kBoundary);
    REQUIRE(all);
    CHECK(all->address == kBase + kBoundary);
    f.segments.give_back(all);
    CHECK(f.segments.largest_free() == kMiB - kUnit);
    // Beside the smaller neighbour: the segment's end, and then what lies there.
    Block* at_end = f.segments.take(kBoundary - kUnit, kBoundary);
    REQUIRE(at_end);
    CHECK(at_end->address == kBase + kMiB - kBoundary);
    Block* at_begin = f.segments.take(kBoundary, kBoundary);
    REQUIRE(at_begin);
    CHECK(at_begin->address == kBase + kBoundary);
    for (Block* block : {at_end, at_begin, first})
        f.segments.give_back(block);
    CHECK(f.segments.largest_free() == kMiB);
}

TEST_CASE("an aligned block leaves what is before it to others") {
    Fixture f;
    f.add(0, 4 * kMiB);
    Block* odd = f.segments.take(512);
    Block* aligned = f.segments.take(128 << 10, 64 << 10);
    REQUIRE(aligned);
    CHECK(aligned->address % (64 << 10) == 0);
    CHECK(aligned->bytes == 128 << 10);
    Block* small = f.segments.take(1024);
    CHECK(small->address == kBase + 512);
    f.segments.give_back(odd);
    f.segments.give_back(small);
    f.segments.give_back(aligned);
    CHECK(Segments::idle(*f.segments.first()));
}

TEST_CASE("what lies in another segment is no neighbour, even at the next address") {
    Fixture f;
    Segment* first = f.add(0, 2 * kMiB);
    f.add(2 * kMiB, 2 * kMiB);
    CHECK_FALSE(f.segments.take(3 * kMiB));
    CHECK(f.segments.count() == 2);
    f.segments.remove(first);
    CHECK(f.segments.bytes() == 2 * kMiB);
    CHECK(f.segments.first()->address == kBase + 2 * kMiB);
}

TEST_CASE("of huge segments a block gets only what it may") {
    Fixture f;
    using Place = Segments::Place;
    f.segments.add(kBase, 200 * kMiB, kBase, kBase + 200 * kMiB, nullptr, true);
    CHECK(f.segments.huge_bytes() == 200 * kMiB);
    CHECK(f.segments.idle_huge_bytes() == 200 * kMiB);
    CHECK(f.segments.largest_free() == 200 * kMiB);
    // It is too good for anything much smaller, unless that doesn't matter.
    CHECK_FALSE(f.segments.take(kMiB, 0, Place::proper));
    CHECK_FALSE(f.segments.take(kMiB, 0, Place::in_use));
    CHECK_FALSE(f.segments.take(100 * kMiB, 0, Place::in_use));
    Block* most = f.segments.take(130 * kMiB, 0, Place::proper);
    REQUIRE(most);
    CHECK(f.segments.idle_huge_bytes() == 0);
    // Once it is in use, so may be the rest.
    CHECK_FALSE(f.segments.take(kMiB, 0, Place::proper));
    Block* small = f.segments.take(kMiB, 0, Place::in_use);
    REQUIRE(small);
    CHECK(small->segment == most->segment);
    f.segments.give_back(most);
    CHECK_FALSE(f.segments.take(130 * kMiB, 0, Place::proper));
    f.segments.give_back(small);
    CHECK(f.segments.idle_huge_bytes() == 200 * kMiB);
    small = f.segments.take(kMiB, 0, Place::any);
    REQUIRE(small);
    f.segments.give_back(small);
    f.segments.remove(f.segments.first());
    CHECK(f.segments.huge_bytes() == 0);
    CHECK(f.segments.largest_free() == 0);
}

TEST_CASE("random blocks never overlap, and everything merges in the end") {
    Fixture f;
    f.add(0, 64 * kMiB);
    f.add(100 * kMiB, 32 * kMiB);
    std::mt19937_64 random(1);
    std::vector<Block*> live;
    uint64_t used = 0;
    for (int i = 0; i < 20'000; i++) {
        if (live.empty() || random() % 2) {
            const uint64_t bytes = (random() % 2000 + 1) * 512;
            Block* block = f.segments.take(bytes, random() % 4 ? SizeClass::kUnit : 64 << 10);
            if (!block)
                continue;
            REQUIRE(block->bytes == bytes);
            used += bytes;
            live.push_back(block);
        } else {
            const size_t k = random() % live.size();
            used -= live[k]->bytes;
            f.segments.give_back(live[k]);
            live[k] = live.back();
            live.pop_back();
        }
        REQUIRE(f.segments.free_bytes() == 96 * kMiB - used);
    }
    for (const Segment* segment = f.segments.first(); segment; segment = segment->next) {
        uint64_t at = segment->begin;
        for (const Block* block = segment->first; block; block = block->after) {
            REQUIRE(block->address == at);
            at += block->bytes;
        }
        REQUIRE(at == segment->end);
    }
    for (Block* block : live)
        f.segments.give_back(block);
    CHECK(Segments::idle(*f.segments.first()));
    CHECK(Segments::idle(*f.segments.first()->next));
    CHECK(f.segments.largest_free() == 64 * kMiB);
}

TEST_CASE("memory at addresses that there is no map of is given back, and not asked for again") {
    Allocator a;
    a.memory.next = 1ull << 49;
    CHECK(a.allocate(1000) == 0);
    CHECK(a.denied.by == AllocationError::By::place);
    CHECK(a.memory.held == 0);
    CHECK(a.memory.takes == 1);
    CHECK(a.allocate(100 * kMiB) == 0);
    CHECK(a.denied.by == AllocationError::By::place);
    CHECK(a.memory.takes == 1);
    // Another context's may lie elsewhere.
    a.allocator.close();
    a.memory.next = 1ull << 40;
    a.allocator.open(a.memory.backing(), shared_map(), {});
    CHECK(a.allocate(1000));
}

}  // namespace cuslice
