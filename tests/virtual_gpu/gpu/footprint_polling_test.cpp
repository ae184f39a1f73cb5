// SPDX-License-Identifier: Apache-2.0
// When the driver's footprint is polled: by the growth of the allocations, and by what polls have found.
#include "virtual_gpu/gpu/footprint_polling.h"

#include <cstdint>
#include <utility>

#include "tests/catch.h"

using namespace cuslice;
using Mark = FootprintPolling::Mark;
using Answer = FootprintPolling::Answer;

namespace {

constexpr uint64_t kMiB = 1 << 20;

/// Polls that find nothing, so many in a row, the last of them at `now`; CUDA says that `unseen` bytes are in use.
void poll_in_vain(FootprintPolling& polling, unsigned times, uint64_t unseen, int64_t now) {
    for (unsigned i = 0; i < times; i++)
        polling.polled(false, unseen, now);
}

/// Requests of so many polls, none of which is to find anything.
unsigned due_of(FootprintPolling& polling, unsigned requests) {
    unsigned due = 0;
    for (unsigned i = 0; i < requests; i++)
        due += polling.due();
    return due;
}

}  // namespace

TEST_CASE("the driver is polled before the allocations have grown by more than the margin") {
    FootprintPolling polling;
    polling.restart(100 * kMiB, 16 * kMiB);
    CHECK_FALSE(polling.at_mark(100 * kMiB, 16 * kMiB));
    CHECK_FALSE(polling.at_mark(116 * kMiB, 0));
    REQUIRE(polling.at_mark(100 * kMiB, 16 * kMiB + 1));
    CHECK(polling.reach(100 * kMiB, 16 * kMiB + 1, 16 * kMiB + 1) == Mark::passed);
    CHECK(polling.at_mark(100 * kMiB, ~0ull));
    CHECK(polling.reach(100 * kMiB, ~0ull, 1024 * kMiB) == Mark::passed);
    // The mark moves with bytes that it has been polled for.
    polling.restart(100 * kMiB, 16 * kMiB);
    polling.advance(20 * kMiB);
    CHECK_FALSE(polling.at_mark(120 * kMiB, 16 * kMiB));
    CHECK(polling.at_mark(120 * kMiB, 16 * kMiB + 1));
}

TEST_CASE("the margin counts from where the allocations were at their lowest since the last poll") {
    FootprintPolling polling;
    polling.restart(100 * kMiB, 16 * kMiB);
    REQUIRE(polling.at_mark(99 * kMiB, kMiB));
    CHECK(polling.reach(99 * kMiB, kMiB, kMiB) == Mark::moved);
    CHECK_FALSE(polling.at_mark(99 * kMiB, 16 * kMiB));
    REQUIRE(polling.at_mark(40 * kMiB, 60 * kMiB));
    CHECK(polling.reach(40 * kMiB, 60 * kMiB, 60 * kMiB) == Mark::near);
    // Until somebody polls it stays so.
    CHECK(polling.reach(40 * kMiB, 60 * kMiB, 60 * kMiB) == Mark::near);
    CHECK(polling.reach(40 * kMiB, 76 * kMiB, 76 * kMiB) == Mark::passed);
}

TEST_CASE("the most that was used is what was charged when somebody looked, and up to the margin more") {
    FootprintPolling polling;
    CHECK(polling.most_used() == 0);
    polling.restart(100 * kMiB, 16 * kMiB);
    CHECK(polling.most_used() == 116 * kMiB);
    polling.restart(50 * kMiB, 8 * kMiB);
    CHECK(polling.most_used() == 108 * kMiB);
    CHECK(polling.reach(50 * kMiB, ~0ull, 1000 * kMiB) == Mark::passed);
    CHECK(polling.most_used() == 1058 * kMiB);
}

TEST_CASE("polls that find nothing become rare, and one that finds something makes them frequent again") {
    FootprintPolling polling;
    int64_t now = 5000;
    poll_in_vain(polling, 15, 300 * kMiB, now);
    CHECK(polling.ask(false, now) == Answer::yes);
    poll_in_vain(polling, 1, 300 * kMiB, now);
    CHECK(polling.ask(false, now) == Answer::if_unseen_changed);
    CHECK_FALSE(polling.changed(300 * kMiB));
    CHECK(polling.changed(301 * kMiB));
    CHECK(polling.ask(false, now + 999) == Answer::if_unseen_changed);
    CHECK(polling.ask(false, now + 1000) == Answer::yes);
    polling.polled(true, 300 * kMiB, now);
    CHECK(polling.ask(false, now) == Answer::yes);
}

TEST_CASE("where CUDA can't tell what is in use, or others move it all the time, the intervals are short") {
    FootprintPolling polling;
    const auto [vain, unseen] = GENERATE(std::pair{16u, FootprintPolling::kUnknown}, std::pair{1024u, uint64_t{0}});
    poll_in_vain(polling, vain, unseen, 5000);
    CHECK(polling.ask(false, 5099) == Answer::no);
    CHECK(polling.ask(false, 5100) == Answer::yes);
}

TEST_CASE("far from the limit one question in a tick of the clock is enough") {
    FootprintPolling polling;
    CHECK(polling.ask(true, 5000) == Answer::yes);
    CHECK(polling.ask(true, 5000) == Answer::no);
    CHECK(polling.ask(false, 5000) == Answer::yes);
    CHECK(polling.ask(true, 5001) == Answer::yes);
}

TEST_CASE("a program that has been doing the same for long asks every eighth time, and compares every 64th") {
    FootprintPolling polling;
    poll_in_vain(polling, 16, 0, 5000);
    CHECK(due_of(polling, 255) == 255);
    CHECK(due_of(polling, 64) == 8);
    CHECK(due_of(polling, 1));  // the 320th
    CHECK(polling.ask(false, 5000) == Answer::if_unseen_changed);
    CHECK(due_of(polling, 8) == 1);
    CHECK(polling.ask(false, 5000) == Answer::no);
    polling.polled(true, 0, 5000);
    CHECK(due_of(polling, 255) == 255);
}

TEST_CASE("a footprint that has become smaller is stale until somebody reads it") {
    FootprintPolling polling;
    CHECK_FALSE(polling.stale());
    polling.set_stale();
    CHECK(polling.stale());
    CHECK(polling.take_stale());
    CHECK_FALSE(polling.stale());
    CHECK_FALSE(polling.take_stale());
}
