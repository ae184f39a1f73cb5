// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/event.h"

#include "fake/driver/model_time.h"
#include "fake/driver/time_client.h"

namespace cuslice::fake {

Record begin_record(Event& event) {
    auto time = std::make_shared<std::atomic<uint64_t>>(0);
    if (event.shared == nullptr && time_client != nullptr)
        return {[] {}, time};  // the queue writes it
    if (event.shared == nullptr)
        return {[time] { *time = model_time(); }, time};
    return {[shared = event.shared, number = event.shared->begin_record()] { shared->reach(number); }, time};
}

void note_record(Event& event, const Record& record, WorkQueue::Mark mark) {
    event.recorded = true;
    event.captured = false;
    event.capture.reset();
    event.after = {};
    event.time = record.time;
    event.mark = std::move(mark);
}

bool event_reached(const Event& event) {
    if (event.shared != nullptr)
        return event.shared->reached(event.shared->latest());
    return !event.recorded || WorkQueue::done(event.mark);
}

void wait_for_event(const Event& event) {
    if (event.shared != nullptr)
        return event.shared->wait(event.shared->latest());
    WorkQueue::wait(event.mark);
}

void wait_in_queue(WorkQueue& queue, const Event& event) {
    if (event.shared == nullptr)
        return queue.submit([] {}, {event.mark});
    // Another process may be slow: that may block a thread of the queue's own only.
    queue.submit_host([shared = event.shared, number = event.shared->latest()] { shared->wait(number); });
}

}  // namespace cuslice::fake
