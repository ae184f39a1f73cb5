// SPDX-License-Identifier: Apache-2.0
// Spans of small blocks, and where their words lie.
#include <algorithm>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {

namespace {

uintptr_t line_of_word(uint64_t address) {
    Span* span = shared_map().at(address).span;
    REQUIRE(span);
    return reinterpret_cast<uintptr_t>(&span->word(span->index_of(address))) / Span::kLine;
}

}  // namespace

TEST_CASE("the first blocks of threads have their words on cache lines of their own, in each class") {
    constexpr unsigned kThreads = 4;
    for (unsigned size_class = 0; size_class < SizeClass::kCount; size_class++) {
        Allocator a;
        std::vector<uint64_t> blocks(kThreads);
        for (uint64_t& block : blocks) {
            std::thread([&] {
                AllocationError denied;
                block = a.allocator.allocate(SizeClass::bytes(size_class), &denied);
                TestAllocator::thread_ends();
            }).join();
            REQUIRE(block);
        }
        std::set<uintptr_t> lines;
        for (const uint64_t block : blocks)
            lines.insert(line_of_word(block));
        INFO("blocks of " << SizeClass::bytes(size_class));
        CHECK(lines.size() == kThreads);
        for (const uint64_t block : blocks)
            CHECK(a.free(block) == TestAllocator::Freed::done);
    }
}

TEST_CASE("a span hands out each of its blocks once, and its words lie in its record") {
    for (unsigned size_class = 0; size_class < SizeClass::kCount; size_class++) {
        Allocator a;
        const uint64_t bytes = SizeClass::bytes(size_class);
        std::set<uint64_t> blocks;
        const uint64_t first = a.allocate(bytes);
        Span* span = shared_map().at(first).span;
        blocks.insert(first);
        while (blocks.size() < SizeClass::blocks(size_class))
            CHECK(blocks.insert(a.allocate(bytes)).second);
        INFO("blocks of " << bytes);
        const uint64_t of_span =
            std::ranges::count_if(blocks, [&](uint64_t block) { return shared_map().at(block).span == span; });
        CHECK(of_span == SizeClass::blocks(size_class));
        const auto* const end = reinterpret_cast<const char*>(&span->word(span->count - 1u)) + sizeof(uint32_t);
        CHECK(end <= reinterpret_cast<const char*>(span) + Span::record_bytes(size_class));
        CHECK(Span::record_bytes(size_class) * 100 <= SizeClass::span_bytes(size_class));
        for (const uint64_t block : blocks)
            CHECK(a.free(block) == TestAllocator::Freed::done);
    }
}

}  // namespace cuslice
