// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/work_queue.h"

#include <thread>

#include "fake/driver/time_client.h"
#include "fake/driver/work_queues.h"

namespace cuslice::fake {

constinit std::mutex queues_lock;
constinit bool WorkQueue::late_ = false;
constinit std::atomic<uint64_t> WorkQueue::pending_{0};
constinit std::atomic<bool> WorkQueue::timed_{false};

std::condition_variable& progress() {
    static auto* one = new std::condition_variable;  // threads may outlive the process's static objects
    return *one;
}

static std::vector<TimePoint> times_of(const std::vector<WorkQueue::Mark>& marks) {
    std::vector<TimePoint> times;
    for (const WorkQueue::Mark& mark : marks)
        times.push_back(mark.time);
    return times;
}

void WorkQueue::keep_time(uint32_t context) {
    if (time_client == nullptr)
        return;
    time_ = std::make_unique<TimedQueue>(context);
    timed_ = true;
}

void WorkQueue::submit(Task task, const std::vector<Mark>& after, const Needs& needs) {
    if (time_ != nullptr) {
        const TimePoint end = time_->submit(needs.work, times_of(after), needs.reached_at);
        if (needs.ended)
            std::thread([end, ended = needs.ended] { end.release_when(ended); }).detach();
    }
    run(std::move(task), after);
}

void WorkQueue::run(Task task, const std::vector<Mark>& after) {
    {
        Hold hold(queues_lock);
        if (late_)
            return enqueue_late({std::move(task), after}, hold);
        bool free = !running_ && items_.empty();
        for (const Mark& mark : after)
            free = free && mark.queue->completed_ >= mark.ticket;
        if (!free) {
            enqueue({std::move(task), after});
            return;
        }
        running_ = true;
        begun();
    }
    task();
    const std::lock_guard hold(queues_lock);
    ended();
    running_ = false;
    // Another thread may have queued a host function meanwhile: that needs a thread of its own.
    if (!items_.empty()) {
        running_ = true;
        std::thread([self = shared_from_this()] { self->drain(); }).detach();
    }
    progress().notify_all();
}

void WorkQueue::submit_host(Task host_task, const std::vector<Mark>& after) {
    Task task = std::move(host_task);
    if (time_ != nullptr) {
        // It starts when all before it has ended, and ends when the host says so.
        const TimePoint begin = time_->submit({}, times_of(after)), end = time_->submit({.held = true}, {});
        task = [begin, end, host = std::move(task)] {
            begin.wait();
            host();
            end.release();
        };
    }
    Hold hold(queues_lock);
    if (late_)
        return enqueue_late({std::move(task), after, true}, hold);
    enqueue({std::move(task), after, true});
}

// With the lock held.
void WorkQueue::enqueue(Item item) {
    begun();
    items_.push_back(std::move(item));
    if (running_)
        return;
    running_ = true;
    std::thread([self = shared_from_this()] { self->drain(); }).detach();
}

void WorkQueue::drain() {
    Hold hold(queues_lock);
    while (!items_.empty()) {
        Item item = std::move(items_.front());
        items_.pop_front();
        hold.unlock();
        for (const Mark& mark : item.after)
            wait_until_run(mark);
        item.task();
        item = {};
        hold.lock();
        ended();
        progress().notify_all();
    }
    running_ = false;
}

WorkQueue::Mark WorkQueue::mark() {
    const TimePoint time = time_ != nullptr ? time_->last() : TimePoint{};
    const std::lock_guard hold(queues_lock);
    return {shared_from_this(), submitted_, time};
}

void WorkQueue::note_times() {
    if (time_ != nullptr)
        time_->note_times();
}

bool WorkQueue::idle() {
    {
        const std::lock_guard hold(queues_lock);
        if (completed_ != submitted_)
            return false;
    }
    return time_ == nullptr || time_->last().reached();
}

void WorkQueue::wait() { wait(mark()); }

bool WorkQueue::done(const Mark& mark) { return ran(mark) && mark.time.reached(); }

void WorkQueue::wait(const Mark& mark) {
    wait_until_run(mark);
    mark.time.wait();
}

bool WorkQueue::ran(const Mark& mark) {
    if (mark.queue == nullptr)
        return true;
    const std::lock_guard hold(queues_lock);
    return mark.queue->completed_ >= mark.ticket;
}

void WorkQueue::wait_until_run(const Mark& mark) {
    if (mark.queue == nullptr)
        return;
    Hold hold(queues_lock);
    if (late_)
        return wait_late(mark, hold);
    progress().wait(hold, [&] { return mark.queue->completed_ >= mark.ticket; });
}

}  // namespace cuslice::fake
