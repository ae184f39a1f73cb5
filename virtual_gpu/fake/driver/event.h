#pragma once
// Events.

#include <atomic>
#include <memory>

#include "virtual_gpu/fake/driver/capture.h"
#include "virtual_gpu/fake/driver/context.h"
#include "virtual_gpu/fake/driver/lane.h"

namespace cuslice::fake {

struct Event {
    CUcontext context = nullptr;
    unsigned flags = CU_EVENT_DEFAULT;
    bool recorded = false;
    Lane::Mark mark;                 // complete when everything before the record is
    std::weak_ptr<Capture> capture;  // the one that it was recorded in, as long as that lasts
    /// When the record was reached, in nanoseconds; written by the lane, which may outlive the event.
    std::shared_ptr<std::atomic<std::uint64_t>> time = std::make_shared<std::atomic<std::uint64_t>>(0);
};

using EventTable = HandleTable<Event, CUevent, HandleKind::Event>;
extern EventTable events;

/// What an event notes when it is reached, in nanoseconds.
std::uint64_t event_time();

}  // namespace cuslice::fake
