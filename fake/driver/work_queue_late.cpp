// SPDX-License-Identifier: Apache-2.0
// Late work: it stays in its queue until somebody waits for it.
#include <cstddef>
#include <thread>

#include "fake/driver/work_queue.h"
#include "fake/driver/work_queues.h"

namespace cuslice::fake {
namespace {

// More is never queued, in all queues together: a GPU takes no more either, and a program that never waits must not
// fill the host's memory.
constexpr size_t kMaxQueued = 1024;
// The most that one look, or one submission too many, lets a queue get on.
constexpr uint64_t kMaxAtOnce = 16;

// With the lock held, all of these.
size_t queued = 0;
uint64_t random_state = 0;

/// Work queues with work that is not done, in no order.
auto& busy() {
    static auto* all = new std::vector<std::shared_ptr<WorkQueue>>;
    return *all;
}

uint64_t random_number() {
    random_state += 0x9e3779b97f4a7c15;
    uint64_t z = random_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

}  // namespace

void WorkQueue::be_late(uint64_t seed) {
    const std::lock_guard hold(queues_lock);
    late_ = true;
    random_state = seed;
}

void WorkQueue::enqueue_late(Item item, Hold& hold) {
    std::erase_if(item.after, [](const Mark& mark) { return mark.queue->completed_ >= mark.ticket; });
    const bool first = completed_ == submitted_;
    begun();
    if (first) {
        place_ = busy().size();
        busy().push_back(shared_from_this());
    }
    items_.push_back(std::move(item));
    queued++;
    // Random queues advance, each by a random number of items. A queue that can't, as its host function blocks, is
    // passed over.
    for (size_t tries = 0; queued > kMaxQueued && tries < 64; tries++) {
        const uint64_t chance = random_number();
        const std::shared_ptr<WorkQueue> queue = busy()[chance % busy().size()];
        for (uint64_t i = 0; i <= (chance >> 32) % kMaxAtOnce; i++)
            if (!advance(queue, hold, Host::aside))
                break;
    }
}

void WorkQueue::run_front(Hold& hold, Host host) {
    const std::shared_ptr<WorkQueue> self = shared_from_this();
    Item item = std::move(items_.front());
    items_.pop_front();
    queued--;
    running_ = true;
    if (item.host && host == Host::aside) {
        std::thread([self, task = std::move(item.task)] {
            task();
            const std::lock_guard held(queues_lock);
            self->finish_late();
        }).detach();
        return;
    }
    hold.unlock();
    item.task();
    item = {};
    hold.lock();
    finish_late();
}

void WorkQueue::finish_late() {
    running_ = false;
    ended();
    if (completed_ == submitted_) {
        busy()[place_] = busy().back();
        busy()[place_]->place_ = place_;
        busy().pop_back();
    }
    progress().notify_all();
}

// The next work that this queue needs: its own, or that of a queue which it waits for. False if another thread
// is at it.
bool WorkQueue::advance(std::shared_ptr<WorkQueue> queue, Hold& hold, Host host) {
    for (;;) {
        if (queue->items_.empty() || queue->running_)
            return false;
        std::shared_ptr<WorkQueue> before;
        for (const Mark& mark : queue->items_.front().after)
            if (mark.queue->completed_ < mark.ticket)
                before = mark.queue;
        if (before == nullptr)
            break;
        queue = std::move(before);  // marks are made of what has been submitted: there is no way round in a circle
    }
    queue->run_front(hold, host);
    return true;
}

void WorkQueue::wait_late(const Mark& mark, Hold& hold) {
    while (mark.queue->completed_ < mark.ticket)
        if (!advance(mark.queue, hold, Host::here))
            progress().wait(hold);
}

void WorkQueue::look(const Mark& mark) {
    mark.time.look();
    Hold hold(queues_lock);
    if (!late_ || mark.queue == nullptr || mark.queue->completed_ >= mark.ticket)
        return;
    const uint64_t chance = random_number();
    if (chance % 4 == 0)
        advance(busy().empty() ? mark.queue : busy()[(chance >> 8) % busy().size()], hold, Host::aside);
    if (chance % 2 == 0)
        return;
    for (uint64_t i = 0; i <= (chance >> 32) % kMaxAtOnce; i++)
        if (mark.queue->completed_ >= mark.ticket || !advance(mark.queue, hold, Host::aside))
            return;
}

void WorkQueue::finish_all() {
    Hold hold(queues_lock);
    std::vector<Mark> all;
    for (const std::shared_ptr<WorkQueue>& queue : busy())
        all.push_back({queue, queue->submitted_});
    for (const Mark& mark : all)
        wait_late(mark, hold);
}

}  // namespace cuslice::fake
