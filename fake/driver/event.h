// SPDX-License-Identifier: Apache-2.0
#pragma once
// Events.

#include <atomic>
#include <memory>

#include "fake/driver/capture.h"
#include "fake/driver/context.h"
#include "fake/driver/shared_event.h"
#include "fake/driver/work_queue.h"

namespace cuslice::fake {

struct Event {
    CUcontext context = nullptr;
    Gpu* gpu = nullptr;
    unsigned flags = CU_EVENT_DEFAULT;
    bool recorded = false;
    WorkQueue::Mark mark;            // complete when everything before the record is
    bool captured = false;           // it was last recorded in a capture, which may have ended
    std::weak_ptr<Capture> capture;  // that capture
    Dependencies after;              // and what the stream's next node depended on then
    /// When the record was reached, in nanoseconds of model time; written by the queue, which may outlive the event.
    ReachedAt time = std::make_shared<std::atomic<uint64_t>>(0);
    std::shared_ptr<SharedEvent> shared;  // of an event between processes: what is said of it there holds
};

inline constinit HandleTable<Event, CUevent, HandleKind::Event> events;

/// A record that has been begun. Whoever begins one submits its task; if that can't be, runs it.
struct Record {
    Task task;
    ReachedAt time;
};
Record begin_record(Event& event);
/// It has been submitted, up to this mark.
void note_record(Event& event, const Record& record, WorkQueue::Mark mark);

/// Records an event, or waits for one, in all streams of a context, or of the green one that it is the name of.
/// CUDA_ERROR_INVALID_CONTEXT for no name.
CUresult record_in(const Context* name, Event* event);
CUresult wait_in(const Context* name, const Event* event);

bool event_reached(const Event& event);
void wait_for_event(const Event& event);
/// Makes work that is submitted to the queue from now on wait for the event, without blocking the caller.
void wait_in_queue(WorkQueue& queue, const Event& event);

}  // namespace cuslice::fake
