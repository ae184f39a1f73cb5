// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/thread_events.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/rounds.h"

namespace cuslice {
namespace {

// NOLINTNEXTLINE(performance-no-int-to-ptr): a made-up handle
CUcontext context(uintptr_t number) { return reinterpret_cast<CUcontext>(number << 12); }
// NOLINTNEXTLINE(performance-no-int-to-ptr): the same
CUevent event(uintptr_t number) { return reinterpret_cast<CUevent>(number << 4); }

TEST_CASE("a thread has one event to spare, of one context, and takes it once") {
    const auto events = std::make_unique<ThreadEvents>();
    ThreadEvents::Place* const place = events->place();
    REQUIRE(place);
    CHECK(events->place() == place);
    CHECK(place->take(context(1)) == nullptr);
    REQUIRE(place->keep(context(1), event(1)));
    CHECK_FALSE(place->keep(context(2), event(2)));
    CHECK(place->take(context(2)) == nullptr);
    CHECK(place->take(context(1)) == event(1));
    CHECK(place->take(context(1)) == nullptr);
    REQUIRE(place->keep(context(2), event(2)));
    place->drop();
    CHECK(place->take(context(2)) == nullptr);
}

TEST_CASE("a context that ends takes the events that threads keep of it, and no others") {
    const auto events = std::make_unique<ThreadEvents>();
    ThreadEvents::Place* const place = events->place();
    REQUIRE(place->keep(context(1), event(1)));
    events->context_ended(context(2));
    CHECK(place->take(context(1)) == event(1));
    REQUIRE(place->keep(context(1), event(1)));
    tests::on_threads(1, [&](unsigned) { events->context_ended(context(1)); });
    CHECK(place->take(context(1)) == nullptr);
}

TEST_CASE("a thread that ends leaves what it kept, and its place to another thread") {
    const auto events = std::make_unique<ThreadEvents>();
    CUcontext left_context = nullptr;
    CUevent left = nullptr;
    const auto leave = [&](CUcontext of, CUevent what) { left_context = of, left = what; };
    for (uintptr_t i = 1; i <= 2 * ThreadEvents::kThreads; i++) {
        CAPTURE(i);
        bool kept = false;
        std::thread([&] {
            ThreadEvents::Place* const place = events->place();
            kept = place && !place->take(context(1)) && place->keep(context(1), event(i));
            events->thread_ends(leave);
            events->thread_ends(leave);  // it has none now
        }).join();
        CHECK(kept);
        CHECK(left_context == context(1));
        CHECK(left == event(i));
    }
    left = nullptr;
    events->thread_ends(leave);
    CHECK(left == nullptr);
}

TEST_CASE("threads have places of their own, until there are no more") {
    const auto events = std::make_unique<ThreadEvents>();
    constexpr unsigned kMore = 3;
    std::atomic<unsigned> ready{0}, without{0}, lost{0};
    tests::on_threads(ThreadEvents::kThreads + kMore, [&](unsigned number) {
        ThreadEvents::Place* const place = events->place();
        if (place)
            place->keep(context(1), event(number + 1));
        else
            without++;
        for (ready++; ready < ThreadEvents::kThreads + kMore;)
            std::this_thread::yield();
        if (place && place->take(context(1)) != event(number + 1))
            lost++;
        events->thread_ends([](CUcontext, CUevent) {});
    });
    CHECK(without == kMore);
    CHECK(lost == 0);
}

TEST_CASE("a place of another object's is no place here") {
    const auto one = std::make_unique<ThreadEvents>(), other = std::make_unique<ThreadEvents>();
    REQUIRE(one->place()->keep(context(1), event(1)));
    CHECK(other->place()->take(context(1)) == nullptr);
}

}  // namespace
}  // namespace cuslice
