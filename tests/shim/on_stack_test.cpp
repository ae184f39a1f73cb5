// SPDX-License-Identifier: Apache-2.0
// Tells whether a thread is still in one of our frames or has left it by a longjmp.
#include <sys/mman.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdint>

#include "shim/entry.h"
#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr uintptr_t kFar = 16 << 20;  // another stack
using Judgement = OnStack::Judgement;

const volatile void* moved(const volatile void* from, intptr_t bytes) {
    return reinterpret_cast<const volatile void*>(reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(bytes));
}

[[gnu::noinline]] Judgement judged_below(const OnStack& stack) {
    volatile char here = 0;
    return stack.judge(&here);
}

// Begins, asks from below, and returns without an end, as a longjmp does.
[[gnu::noinline]] Judgement leave(OnStack& stack) {
    volatile uint64_t place = 0;
    stack.begin(&place, OnStack::Hold::by_calls);
    return judged_below(stack);
}

// Where it was called from lies something else afterwards, whatever becomes of the place.
[[gnu::noinline]] void begin_and_leave(OnStack& stack, volatile uint64_t* place) {
    stack.begin(place, OnStack::Hold::by_calls);
}

// Pages for a place, which no stack of this thread's lies near.
struct Pages {
    Pages()
        : size(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
          at(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        REQUIRE(at != MAP_FAILED);
    }
    void unmap() {
        if (at)
            munmap(at, size);
        at = nullptr;
    }
    ~Pages() { unmap(); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    volatile uint64_t* place() const { return static_cast<volatile uint64_t*>(at) + 64; }
    size_t size;
    void* at;
};

/// A call from within what the caller does, as the driver's own are.
[[gnu::noinline]] bool is_inside() { return inside_hook; }
[[gnu::noinline]] bool would_count() {
    const HookEntry entry;
    return entry.counts();
}

std::jmp_buf out;

// A hook that is left by a longjmp.
[[gnu::noinline]] void jump_out_of_hook() {
    const HookEntry entry;
    if (entry.counts() && is_inside())
        std::longjmp(out, 1);
}

}  // namespace

TEST_CASE("a call from below is inside, until its end") {
    OnStack stack;
    CHECK_FALSE(stack.any());
    volatile uint64_t place = 0;
    stack.begin(&place, OnStack::Hold::by_calls);
    CHECK(stack.any());
    CHECK(judged_below(stack) == Judgement::inside);
    const uint64_t first = place;
    CHECK(first != 0);
    stack.end();
    CHECK_FALSE(stack.any());
    CHECK(place == 0);
    // Each time is another: what an earlier one has left behind is not taken for the present one's.
    stack.begin(&place, OnStack::Hold::by_calls);
    CHECK(place != first);
    place = first;
    CHECK(judged_below(stack) == Judgement::left);
    stack.forget();
    CHECK_FALSE(stack.any());
    CHECK(place == first);
}

TEST_CASE("a call from where the frame has been given back has left it") {
    OnStack stack;
    CHECK(leave(stack) == Judgement::inside);
    CHECK(stack.any());
    volatile char here = 0;
    CHECK(stack.judge(&here) == Judgement::left);
    stack.forget();
}

TEST_CASE("a call from far away may be on another stack, which tells nothing") {
    OnStack stack;
    volatile uint64_t place = 0;
    stack.begin(&place, OnStack::Hold::by_calls);
    CHECK(stack.judge(&place) == Judgement::left);
    CHECK(stack.judge(moved(&place, 8)) == Judgement::left);
    CHECK(stack.judge(moved(&place, kFar - 1)) == Judgement::left);
    CHECK(stack.judge(moved(&place, kFar)) == Judgement::unknown);
    CHECK(stack.judge(moved(&place, 1 - static_cast<intptr_t>(kFar))) == Judgement::inside);
    CHECK(stack.judge(moved(&place, -static_cast<intptr_t>(kFar))) == Judgement::unknown);
    stack.end();
}

TEST_CASE("a frame that something else lies in now was left") {
    OnStack stack;
    volatile uint64_t place = 0;
    SECTION("over its place") {
        stack.begin(&place, OnStack::Hold::by_calls);
        place = place + 1;
    }
    SECTION("over its return address") { begin_and_leave(stack, &place); }
    CHECK(judged_below(stack) == Judgement::left);
    stack.forget();
}

TEST_CASE("a stack that is gone was left, and is not read") {
    Pages pages;
    OnStack stack;
    stack.begin(pages.place(), OnStack::Hold::by_calls);
    const volatile void* below = moved(pages.place(), -64);
    CHECK(stack.judge(below) == Judgement::inside);
    pages.unmap();
    errno = 4711;
    CHECK(stack.judge(below) == Judgement::left);
    CHECK(errno == 4711);
    stack.forget();
}

TEST_CASE("calls inside a hook are not the program's") {
    const Within within(kCached);
    if (!within)
        return;
    CHECK_FALSE(is_inside());
    {
        const HookEntry outer;
        CHECK(outer.counts());
        CHECK(is_inside());
        CHECK_FALSE(would_count());
        CHECK(is_inside());
    }
    CHECK_FALSE(is_inside());
    CHECK(would_count());
    CHECK_FALSE(is_inside());
}

TEST_CASE("a hook that was left by a longjmp is forgotten, and what it reserved stays charged") {
    const Within within(kCached);
    if (!within)
        return;
    Within::use(0);
    Budget& budget = process().gpu(0).budget();
    const uint64_t before = budget.used();
    LimitError why;
    REQUIRE(process().gpu(0).reserve(2 << 20, &why));
    if (setjmp(out) == 0) {
        jump_out_of_hook();
        FAIL("it wasn't left");
    }
    hook_frame.reserving = &budget;
    hook_frame.freeing = false;
    CHECK_FALSE(still_inside(__builtin_frame_address(0)));
    CHECK_FALSE(hook_frame.stack.any());
    CHECK(hook_frame.reserving == nullptr);
    CHECK(budget.used() == before + (2 << 20));
    const HookEntry next;
    CHECK(next.counts());
    budget.release(2 << 20);
}
