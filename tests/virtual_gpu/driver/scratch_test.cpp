// SPDX-License-Identifier: Apache-2.0
// Memory for a moment.
#include "virtual_gpu/driver/scratch.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace cuslice {
namespace {

constexpr size_t kPage = ScratchPages::kPage, kAll = ScratchPages::kPages * kPage;

bool all_zero(const void* memory, size_t bytes) {
    const auto* begin = static_cast<const char*>(memory);
    return std::all_of(begin, begin + bytes, [](char c) { return c == 0; });
}

// Counts errors of threads that use scratch memory at the same time: each must find it zero, and then nothing but what
// it wrote itself.
unsigned wrong_of_threads(size_t bytes, int times) {
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; t++)
        threads.emplace_back([&wrong, bytes, times, t] {
            for (int i = 0; i < times; i++) {
                auto* mine = static_cast<char*>(take_scratch(bytes));
                wrong += !mine || !all_zero(mine, bytes);
                std::fill_n(mine, bytes, static_cast<char>(t));
                wrong += std::count(mine, mine + bytes, static_cast<char>(t)) != static_cast<ptrdiff_t>(bytes);
                give_back_scratch(mine, bytes);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    return wrong;
}

}  // namespace

TEST_CASE("memory for a moment is zero, also where it has been used before") {
    for (const size_t bytes : {size_t{1}, kPage - 1, kPage + 1, 3 * kPage}) {
        void* first = take_scratch(bytes);
        REQUIRE(all_zero(first, bytes));
        std::fill_n(static_cast<char*>(first), bytes, 'x');
        give_back_scratch(first, bytes);
        void* second = take_scratch(bytes);
        CHECK(second == first);
        CHECK(all_zero(second, bytes));
        give_back_scratch(second, bytes);
    }
}

TEST_CASE("no page is two's at once, and where there are no more the kernel is asked") {
    std::vector<char*> taken;
    for (size_t i = 0; i < 12; i++)
        taken.push_back(static_cast<char*>(take_scratch(2 * kPage)));
    std::sort(taken.begin(), taken.end());
    for (size_t i = 0; i < taken.size(); i++) {
        REQUIRE(taken[i]);
        if (i)
            CHECK(taken[i] - taken[i - 1] >= static_cast<ptrdiff_t>(2 * kPage));
        std::fill_n(taken[i], 2 * kPage, 'x');
    }
    CHECK_FALSE(ScratchPages::take(1));
    for (char* memory : taken)
        give_back_scratch(memory, 2 * kPage);

    void* whole = ScratchPages::take(kAll);
    CHECK(whole);
    CHECK(ScratchPages::give_back(whole, kAll));
    CHECK_FALSE(ScratchPages::take(kAll + 1));
    void* larger = take_scratch(kAll + 1);
    REQUIRE(larger);
    CHECK_FALSE(ScratchPages::give_back(larger, kAll + 1));
    give_back_scratch(larger, kAll + 1);
}

TEST_CASE("a run of pages is found between others") {
    char* pages[ScratchPages::kPages];
    for (char*& page : pages)
        page = static_cast<char*>(ScratchPages::take(kPage));
    for (const size_t free : {3, 5, 6, 7})
        ScratchPages::give_back(pages[free], kPage);
    CHECK_FALSE(ScratchPages::take(4 * kPage));
    void* const three = ScratchPages::take(3 * kPage);
    CHECK(three == pages[5]);
    CHECK(ScratchPages::take(kPage) == pages[3]);
    CHECK_FALSE(ScratchPages::take(kPage));
    ScratchPages::give_back(three, 3 * kPage);
    for (const size_t i : {0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15})
        ScratchPages::give_back(pages[i], kPage);
    void* const whole = ScratchPages::take(kAll);
    CHECK(whole);
    ScratchPages::give_back(whole, kAll);
}

TEST_CASE("threads that need memory for a moment at the same time have each their own") {
    CHECK(wrong_of_threads(64, 20'000) == 0);
    CHECK(wrong_of_threads(5 * kPage, 500) == 0);
}

}  // namespace cuslice
