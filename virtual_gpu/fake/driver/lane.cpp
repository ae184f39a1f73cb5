#include "virtual_gpu/fake/driver/lane.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace cuslice::fake {
namespace {

constinit std::mutex lanes_lock;

std::condition_variable& progress() {
    static auto* one = new std::condition_variable;  // threads may outlive the process's static objects
    return *one;
}

}  // namespace

void Lane::submit(Task task, const std::vector<Mark>& after) {
    {
        std::unique_lock hold(lanes_lock);
        bool free = !running_ && queue_.empty();
        for (const Mark& mark : after) free = free && mark.lane->completed_ >= mark.ticket;
        if (!free) {
            enqueue(std::move(task), after);
            return;
        }
        running_ = true;
        submitted_++;
    }
    task();
    const std::lock_guard hold(lanes_lock);
    completed_++;
    running_ = false;
    // Another thread may have queued a host function meanwhile: that needs a thread of its own.
    if (!queue_.empty()) {
        running_ = true;
        std::thread([self = shared_from_this()] { self->drain(); }).detach();
    }
    progress().notify_all();
}

void Lane::submit_host(Task task, const std::vector<Mark>& after) {
    const std::lock_guard hold(lanes_lock);
    enqueue(std::move(task), after);
}

// With the lock held.
void Lane::enqueue(Task task, const std::vector<Mark>& after) {
    submitted_++;
    queue_.push_back([task = std::move(task), after] {
        for (const Mark& mark : after) wait(mark);
        task();
    });
    if (running_) return;
    running_ = true;
    std::thread([self = shared_from_this()] { self->drain(); }).detach();
}

void Lane::drain() {
    std::unique_lock hold(lanes_lock);
    while (!queue_.empty()) {
        Task task = std::move(queue_.front());
        queue_.pop_front();
        hold.unlock();
        task();
        task = nullptr;
        hold.lock();
        completed_++;
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
    const std::lock_guard hold(lanes_lock);
    return mark.lane == nullptr || mark.lane->completed_ >= mark.ticket;
}

void Lane::wait(const Mark& mark) {
    if (mark.lane == nullptr) return;
    std::unique_lock hold(lanes_lock);
    progress().wait(hold, [&] { return mark.lane->completed_ >= mark.ticket; });
}

}  // namespace cuslice::fake
