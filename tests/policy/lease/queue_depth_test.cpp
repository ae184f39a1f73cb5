// SPDX-License-Identifier: Apache-2.0
// How many launches may be queued, by marks that a GPU of one speed or another comes past.
#include "policy/lease/queue_depth.h"

#include "policy/lease/layout.h"
#include "tests/catch.h"

using namespace cuslice::lease;

namespace {

constexpr uint64_t kTarget = 2 * kMillisecond;

/// A GPU that takes the same time for each launch, and a program that always has as many queued as it may.
struct BusyGpu {
    explicit BusyGpu(uint64_t for_each) : each(for_each) { depth.set_target(kTarget); }
    void begin(uint64_t launched) {
        depth.begin(launched);
        done = launched;
    }
    void pass(uint64_t launches) {
        done += launches;
        now += launches * each;
        depth.passed(done, now, now);
    }
    /// Time for which all that may be queued keeps it busy.
    uint64_t queued() const { return (depth.allowed() - done) * each; }

    uint64_t each, now = kMillisecond, done = 0;
    QueueDepth depth;
};

}  // namespace

TEST_CASE("at first two launches may be queued behind those that are, with a mark behind each") {
    QueueDepth depth;
    depth.set_target(kTarget);
    depth.begin(10);
    CHECK(depth.step() == 1);
    CHECK(depth.allowed() == 12);
}

TEST_CASE("what may be queued keeps the GPU busy for the target to twice that") {
    const uint64_t each = GENERATE(10'000, 100'000, 1'000'000);
    BusyGpu gpu(each);
    gpu.begin(0);
    for (int i = 0; i < 10; i++)
        gpu.pass(gpu.depth.step());
    CHECK(gpu.depth.step() == kTarget / each);
    CHECK(gpu.queued() >= kTarget);
    CHECK(gpu.queued() <= 2 * kTarget);
}

TEST_CASE("of launches that take longer than the target, one runs and one is queued") {
    BusyGpu gpu(3 * kTarget);
    gpu.begin(0);
    for (int i = 0; i < 5; i++)
        gpu.pass(1);
    CHECK(gpu.depth.step() == 1);
    CHECK(gpu.depth.allowed() == gpu.done + 2);
}

TEST_CASE("of launches that take no time, there is a most that may be queued") {
    BusyGpu gpu(GENERATE(0, 1));
    gpu.begin(0);
    for (int i = 0; i < 5; i++)
        gpu.pass(1);
    CHECK(gpu.depth.step() == QueueDepth::kMost);
    CHECK(gpu.depth.allowed() == gpu.done + 2 * QueueDepth::kMost);
}

TEST_CASE("one mark tells nothing of the speed") {
    BusyGpu gpu(100'000);
    gpu.begin(5);
    gpu.pass(1);
    CHECK(gpu.depth.step() == 1);
    CHECK(gpu.depth.allowed() == 8);
}

TEST_CASE("a mark of which no earlier look is known tells nothing of the speed, and the next one neither") {
    QueueDepth depth;
    depth.set_target(kTarget);
    depth.begin(0);
    depth.passed(1, 0, 5 * kMillisecond);
    CHECK(depth.step() == 1);
    CHECK(depth.allowed() == 3);
    depth.passed(2, 5 * kMillisecond, 5 * kMillisecond + 1000);
    CHECK(depth.step() == 1);
    depth.passed(3, 5 * kMillisecond + 1000, 6 * kMillisecond);
    CHECK(depth.step() == 2);
}

TEST_CASE("a mark that is passed again counts no launches, and what was allowed stays so") {
    BusyGpu gpu(100'000);
    gpu.begin(0);
    for (int i = 0; i < 3; i++)
        gpu.pass(gpu.depth.step());
    const uint64_t step = gpu.depth.step(), allowed = gpu.depth.allowed();
    gpu.depth.passed(gpu.done, gpu.now, gpu.now + kMillisecond);
    CHECK(gpu.depth.step() == step);
    CHECK(gpu.depth.allowed() == allowed);
    // A GPU that gets slower takes nothing back that was allowed.
    gpu.each *= 100;
    gpu.pass(1);
    CHECK(gpu.depth.step() < step);
    CHECK(gpu.depth.allowed() >= allowed);
}

TEST_CASE("a look that comes late makes the GPU seem no faster") {
    constexpr uint64_t kEach = kMillisecond;
    QueueDepth depth;
    depth.set_target(10 * kEach);
    depth.begin(0);
    // The first launch ended a moment after the look at 1 ms, and the sixth one as late as the next look came.
    depth.passed(1, kMillisecond, 6 * kMillisecond);
    depth.passed(6, 6 * kMillisecond, 6 * kMillisecond + 50'000);
    CHECK(depth.step() >= 9);
    CHECK(depth.step() <= 10);
    depth.passed(7, 6 * kMillisecond + 50'000, 7 * kMillisecond + 50'000);
    CHECK(depth.step() <= 10);
}

TEST_CASE("in the next turn the GPU is taken for a quarter as fast as it was, and its last mark for none") {
    BusyGpu gpu(20'000);
    gpu.begin(0);
    for (int i = 0; i < 5; i++)
        gpu.pass(gpu.depth.step());
    REQUIRE(gpu.depth.step() == 100);
    gpu.now += 50 * kMillisecond;
    gpu.begin(1000);
    CHECK(gpu.depth.step() == 25);
    CHECK(gpu.depth.allowed() == 1050);
    gpu.pass(25);
    CHECK(gpu.depth.step() == 25);
    gpu.pass(25);
    CHECK(gpu.depth.step() == 100);
}

TEST_CASE("as much may be queued for each GPU as for one") {
    QueueDepth one, two;
    one.set_target(kTarget);
    two.set_target(kTarget, 2);
    one.begin(100);
    two.begin(100);
    CHECK(two.allowed() - 100 == 2 * (one.allowed() - 100));
}
