// SPDX-License-Identifier: Apache-2.0
#pragma once
// The time of a queue's work: each piece is told to the timekeeper as well, which says when it has ended.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fake/time/client.h"

namespace cuslice::fake {

/// Where an event keeps the time at which its record was reached.
using ReachedAt = std::shared_ptr<std::atomic<uint64_t>>;

/// A point that the timekeeper knows. A queue without time has none.
struct TimePoint {
    StreamPoint point;

    bool reached() const;
    void wait() const;
    /// Ends held work; at once, or when it is to end, which is asked again and again.
    void release() const;
    void release_when(const std::function<bool()>& ends) const;
    /// The same as reached(), and sees to it that repeated looks see the end at last.
    bool look() const;
};

class TimedQueue {
  public:
    /// `context`: its number at the timekeeper's.
    explicit TimedQueue(uint32_t context) : context_(context) {}
    ~TimedQueue();
    TimedQueue(const TimedQueue&) = delete;
    TimedQueue& operator=(const TimedQueue&) = delete;

    /// Adds a piece that starts after the points; `reached_at`, if not null, gets the time at which it ends. Waits
    /// while the GPU's queue is full. Any thread.
    TimePoint submit(const Work& work, const std::vector<TimePoint>& after, const ReachedAt& reached_at = nullptr);
    /// The end of all that has been submitted.
    TimePoint last();
    /// Writes the times of records that have been reached.
    void note_times();

  private:
    struct Record {
        StreamPoint point;
        ReachedAt reached_at;
    };
    bool has_stream();
    void add(const Work& work);
    void note_reached();

    const uint32_t context_;
    std::mutex lock_;
    uint32_t stream_ = TimeClient::kNone;
    bool refused_ = false;
    TimePoint last_;
    std::deque<Record> records_;  // of which the times aren't known
};

}  // namespace cuslice::fake
