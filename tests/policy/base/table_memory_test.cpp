// SPDX-License-Identifier: Apache-2.0
// Memory for tables: zeroed, each block one table's, and what was given back is handed out again.
#include "policy/base/table_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/policy/rounds.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

// Mapped alone; cut from what is shared; and huge pages of its own.
const std::vector<size_t> kSizes{4096, size_t{64} << 10, size_t{1} << 20, size_t{8} << 20};

bool is_zero(const void* memory, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(memory);
    return std::all_of(at, at + bytes, [](unsigned char byte) { return byte == 0; });
}

}  // namespace

TEST_CASE("without memory there is none, errno is kept, and what was given back can still be had") {
    errno = 4711;
    void* const kept = take_table_memory(kSizes[2]);
    REQUIRE(kept);
    give_back_table_memory(kept, kSizes[2]);
    {
        const NoMappings none;
        CHECK(take_table_memory(kSizes[0]) == nullptr);
        CHECK(take_table_memory(kSizes[3]) == nullptr);
        CHECK(take_table_memory(kSizes[2]) == kept);
        // Until the shared part has none left.
        std::vector<void*> all;
        while (void* memory = take_table_memory(kSizes[2]))
            all.push_back(memory);
        CHECK(all.size() <= 8);
        CHECK(errno == 4711);
        for (void* memory : all)
            give_back_table_memory(memory, kSizes[2]);
    }
    CHECK(errno == 4711);
    give_back_table_memory(kept, kSizes[2]);
    give_back_table_memory(nullptr, kSizes[2]);
    void* const more = take_table_memory(kSizes[3]);
    CHECK(more);
    give_back_table_memory(more, kSizes[3]);
}

TEST_CASE("a block is zeroed, though another table has had it") {
    for (const size_t size : kSizes) {
        CAPTURE(size);
        for (int i = 0; i < 3; i++) {
            void* const memory = take_table_memory(size);
            REQUIRE(memory);
            CHECK(is_zero(memory, size));
            std::memset(memory, 0x5a, size);
            give_back_table_memory(memory, size);
        }
    }
}

TEST_CASE("blocks of the shared sizes that were given back are handed out again, to who wants that size") {
    void* const one = take_table_memory(kSizes[1]);
    void* const other = take_table_memory(kSizes[2]);
    give_back_table_memory(one, kSizes[1]);
    give_back_table_memory(other, kSizes[2]);
    CHECK(take_table_memory(kSizes[2]) == other);
    CHECK(take_table_memory(kSizes[1]) == one);
    give_back_table_memory(one, kSizes[1]);
    give_back_table_memory(other, kSizes[2]);
}

TEST_CASE("large blocks lie on a huge page's boundary") {
    void* const memory = take_table_memory(kSizes[3]);
    CHECK(reinterpret_cast<uintptr_t>(memory) % (size_t{2} << 20) == 0);
    give_back_table_memory(memory, kSizes[3]);
}

TEST_CASE("threads never have one block at a time, and blocks don't overlap") {
    constexpr unsigned kThreads = 4;
    std::vector<std::vector<std::pair<uintptr_t, size_t>>> held(kThreads);
    std::atomic<unsigned> wrong{0};
    on_threads(kThreads, [&](unsigned t) {
        for (int i = 0; i < 100; i++) {
            const size_t size = kSizes[static_cast<size_t>(i) % 3];
            auto* memory = static_cast<unsigned char*>(take_table_memory(size));
            if (!memory) {
                wrong++;
                continue;
            }
            if (memory[0] || memory[size - 1])
                wrong++;
            memory[0] = memory[size - 1] = static_cast<unsigned char>(t + 1);
            if (i % 10 == 0) {
                held[t].emplace_back(reinterpret_cast<uintptr_t>(memory), size);
                continue;
            }
            if (memory[0] != t + 1 || memory[size - 1] != t + 1)
                wrong++;
            give_back_table_memory(memory, size);
        }
    });
    CHECK(wrong == 0);
    std::vector<std::pair<uintptr_t, size_t>> all;
    for (const auto& own : held)
        all.insert(all.end(), own.begin(), own.end());
    std::sort(all.begin(), all.end());
    for (size_t i = 1; i < all.size(); i++)
        CHECK(all[i - 1].first + all[i - 1].second <= all[i].first);
    for (const auto& [address, size] : all)
        give_back_table_memory(reinterpret_cast<void*>(address), size);
}
