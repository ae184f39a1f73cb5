// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/work_queue.h"

#include <thread>

#include "fake/driver/work_queues.h"

namespace cuslice::fake {

constinit std::mutex queues_lock;
constinit bool WorkQueue::late_ = false;
constinit std::atomic<uint64_t> WorkQueue::pending_{0};

std::condition_variable& progress() {
    static auto* one = new std::condition_variable;  // threads may outlive the process's static objects
    return *one;
}

void WorkQueue::submit(Task task, const std::vector<Mark>& after) {
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

void WorkQueue::submit_host(Task task, const std::vector<Mark>& after) {
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
            wait(mark);
        item.task();
        item = {};
        hold.lock();
        ended();
        progress().notify_all();
    }
    running_ = false;
}

WorkQueue::Mark WorkQueue::mark() {
    const std::lock_guard hold(queues_lock);
    return {shared_from_this(), submitted_};
}

bool WorkQueue::idle() {
    const std::lock_guard hold(queues_lock);
    return completed_ == submitted_;
}

void WorkQueue::wait() { wait(mark()); }

bool WorkQueue::done(const Mark& mark) {
    if (mark.queue == nullptr)
        return true;
    const std::lock_guard hold(queues_lock);
    return mark.queue->completed_ >= mark.ticket;
}

void WorkQueue::wait(const Mark& mark) {
    if (mark.queue == nullptr)
        return;
    Hold hold(queues_lock);
    if (late_)
        return wait_late(mark, hold);
    progress().wait(hold, [&] { return mark.queue->completed_ >= mark.ticket; });
}

}  // namespace cuslice::fake
