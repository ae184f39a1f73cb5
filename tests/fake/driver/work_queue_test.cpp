// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/work_queue.h"

#include <atomic>
#include <thread>

#include "tests/catch.h"

using namespace cuslice::fake;

TEST_CASE("work runs at once while nothing is before it") {
    const auto queue = std::make_shared<WorkQueue>();
    std::thread::id where;
    queue->submit([&] { where = std::this_thread::get_id(); });
    CHECK(where == std::this_thread::get_id());
    CHECK(queue->idle());
    CHECK(WorkQueue::done(queue->mark()));
}

TEST_CASE("marks of other queues are waited for, in any number") {
    std::atomic<bool> open{false};
    std::atomic<int> order{0};
    std::vector<std::shared_ptr<WorkQueue>> queues;
    std::vector<WorkQueue::Mark> marks;
    for (int i = 0; i < 8; i++) {
        queues.push_back(std::make_shared<WorkQueue>());
        queues.back()->submit_host([&] {
            while (!open)
                std::this_thread::yield();
            order++;
        });
        marks.push_back(queues.back()->mark());
    }
    const auto last = std::make_shared<WorkQueue>();
    int seen = -1;
    last->submit([&] { seen = order; }, marks);
    CHECK_FALSE(last->idle());
    open = true;
    last->wait();
    CHECK(seen == 8);
}

TEST_CASE("a queue may end before its work does") {
    std::atomic<bool> open{false}, done{false};
    auto queue = std::make_shared<WorkQueue>();
    queue->submit_host([&] {
        while (!open)
            std::this_thread::yield();
    });
    queue->submit([&] { done = true; });
    const WorkQueue::Mark mark = queue->mark();
    queue = nullptr;
    open = true;
    WorkQueue::wait(mark);
    CHECK(done);
}
