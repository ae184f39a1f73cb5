#include "fake/driver/lane.h"

#include <thread>

#include "fake/driver/lanes.h"

namespace cuslice::fake {

constinit std::mutex lanes_lock;
constinit bool Lane::late_ = false;
constinit std::atomic<std::uint64_t> Lane::pending_{0};

std::condition_variable& progress() {
    static auto* one = new std::condition_variable;  // threads may outlive the process's static objects
    return *one;
}

void Lane::submit(Task task, const std::vector<Mark>& after) {
    {
        Hold hold(lanes_lock);
        if (late_) return enqueue_late({std::move(task), after}, hold);
        bool free = !running_ && queue_.empty();
        for (const Mark& mark : after) free = free && mark.lane->completed_ >= mark.ticket;
        if (!free) {
            enqueue({std::move(task), after});
            return;
        }
        running_ = true;
        begun();
    }
    task();
    const std::lock_guard hold(lanes_lock);
    ended();
    running_ = false;
    // Another thread may have queued a host function meanwhile: that needs a thread of its own.
    if (!queue_.empty()) {
        running_ = true;
        std::thread([self = shared_from_this()] { self->drain(); }).detach();
    }
    progress().notify_all();
}

void Lane::submit_host(Task task, const std::vector<Mark>& after) {
    Hold hold(lanes_lock);
    if (late_) return enqueue_late({std::move(task), after, true}, hold);
    enqueue({std::move(task), after, true});
}

// With the lock held.
void Lane::enqueue(Item item) {
    begun();
    queue_.push_back(std::move(item));
    if (running_) return;
    running_ = true;
    std::thread([self = shared_from_this()] { self->drain(); }).detach();
}

void Lane::drain() {
    Hold hold(lanes_lock);
    while (!queue_.empty()) {
        Item item = std::move(queue_.front());
        queue_.pop_front();
        hold.unlock();
        for (const Mark& mark : item.after) wait(mark);
        item.task();
        item = {};
        hold.lock();
        ended();
        progress().notify_all();
    }
    running_ = false;
}

Lane::Mark Lane::mark() {
    const std::lock_guard hold(lanes_lock);
    return {shared_from_this(), submitted_};
}

bool Lane::idle() {
    const std::lock_guard hold(lanes_lock);
    return completed_ == submitted_;
}

void Lane::wait() { wait(mark()); }

bool Lane::done(const Mark& mark) {
    if (mark.lane == nullptr) return true;
    const std::lock_guard hold(lanes_lock);
    return mark.lane->completed_ >= mark.ticket;
}

void Lane::wait(const Mark& mark) {
    if (mark.lane == nullptr) return;
    Hold hold(lanes_lock);
    if (late_) return wait_late(mark, hold);
    progress().wait(hold, [&] { return mark.lane->completed_ >= mark.ticket; });
}

}  // namespace cuslice::fake
