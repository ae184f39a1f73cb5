#include "fake/driver/lane.h"

#include <atomic>
#include <thread>

#include "tests/catch.h"

using namespace cuslice::fake;

TEST_CASE("work runs at once while nothing is before it") {
    const auto lane = std::make_shared<Lane>();
    std::thread::id where;
    lane->submit([&] { where = std::this_thread::get_id(); });
    CHECK(where == std::this_thread::get_id());
    CHECK(lane->idle());
    CHECK(Lane::done(lane->mark()));
}

TEST_CASE("marks of other lanes are waited for, in any number") {
    std::atomic<bool> open{false};
    std::atomic<int> order{0};
    std::vector<std::shared_ptr<Lane>> lanes;
    std::vector<Lane::Mark> marks;
    for (int i = 0; i < 8; i++) {
        lanes.push_back(std::make_shared<Lane>());
        lanes.back()->submit_host([&] {
            while (!open) std::this_thread::yield();
            order++;
        });
        marks.push_back(lanes.back()->mark());
    }
    const auto last = std::make_shared<Lane>();
    int seen = -1;
    last->submit([&] { seen = order; }, marks);
    CHECK_FALSE(last->idle());
    open = true;
    last->wait();
    CHECK(seen == 8);
}

TEST_CASE("a lane may end before its work does") {
    std::atomic<bool> open{false}, done{false};
    auto lane = std::make_shared<Lane>();
    lane->submit_host([&] {
        while (!open) std::this_thread::yield();
    });
    lane->submit([&] { done = true; });
    const Lane::Mark mark = lane->mark();
    lane = nullptr;
    open = true;
    Lane::wait(mark);
    CHECK(done);
}
