// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/timed_queue.h"

#include <unistd.h>

#include "fake/driver/log.h"
#include "fake/driver/time_client.h"

namespace cuslice::fake {

bool TimePoint::reached() const { return point.ticket == 0 || time_client->reached(point); }

void TimePoint::wait() const {
    if (point.ticket != 0)
        time_client->wait(point);
}

void TimePoint::release() const {
    if (point.ticket != 0)
        time_client->release(point);
}

void TimePoint::release_when(const std::function<bool()>& ends) const {
    constexpr useconds_t kNap = 50;  // microseconds
    while (!reached() && !ends())
        usleep(kNap);
    release();
}

bool TimePoint::look() const { return point.ticket == 0 || time_client->look(point); }

TimedQueue::~TimedQueue() {
    if (stream_ == TimeClient::kNone)
        return;
    note_times();
    time_client->close_stream(stream_);
}

/// With the lock held.
bool TimedQueue::has_stream() {
    if (stream_ == TimeClient::kNone && !refused_) {
        stream_ = time_client->open_stream(context_);
        refused_ = stream_ == TimeClient::kNone;
        static std::atomic<bool> said{false};
        if (refused_ && !said.exchange(true))
            log_line("there is no room for one more stream whose work takes time: it takes none");
    }
    return !refused_;
}

TimePoint TimedQueue::submit(const Work& work, const std::vector<TimePoint>& after, const ReachedAt& reached_at) {
    const std::lock_guard hold(lock_);
    if (!has_stream()) {
        if (reached_at != nullptr)
            *reached_at = time_client->now();
        return {};
    }
    Work piece = work;
    for (const TimePoint& one : after) {
        if (one.reached())
            continue;
        if (piece.after.ticket != 0)
            add({.after = piece.after});
        piece.after = one.point;
    }
    add(piece);
    if (reached_at != nullptr)
        records_.push_back({last_.point, reached_at});
    return last_;
}

/// With the lock held.
void TimedQueue::add(const Work& work) {
    time_client->wait_for_room(stream_);
    note_reached();  // of what is written over
    last_ = {{stream_, time_client->submit(stream_, work)}};
}

TimePoint TimedQueue::last() {
    const std::lock_guard hold(lock_);
    return last_;
}

/// With the lock held.
void TimedQueue::note_reached() {
    while (!records_.empty() && time_client->reached(records_.front().point)) {
        *records_.front().reached_at = time_client->reached_at(records_.front().point);
        records_.pop_front();
    }
}

void TimedQueue::note_times() {
    const std::lock_guard hold(lock_);
    note_reached();
}

}  // namespace cuslice::fake
