// SPDX-License-Identifier: Apache-2.0
// Events of all that runs in a context.

#include "fake/driver/api_prologue.h"
#include "fake/driver/event.h"
#include "fake/driver/stream.h"
#include "fake/driver/submit.h"
#include "fake/driver/timing.h"

using namespace cuslice::fake;

namespace {

/// The context that a name stands for; null if it has ended.
Context* context_of(const Context& name) { return name.base != nullptr ? name.base : live_context(name.handle); }

/// The streams of what a handle names, which are in `context`; CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while one of them
/// captures.
CUresult streams_of(const Context& name, Context& context, std::vector<Stream*>& found) {
    CUresult result = CUDA_SUCCESS;
    each_stream(context, [&](Stream& stream) {
        if (name.green != nullptr && stream.green != name.green)
            return;
        if (const CUresult bad = refuse_in_capture(stream); bad != CUDA_SUCCESS)
            result = bad;
        found.push_back(&stream);
    });
    return result;
}

}  // namespace

namespace cuslice::fake {

CUresult record_in(const Context* name, Event* event) {
    if (name == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    Context* const context = context_of(*name);
    if (context == nullptr || event == nullptr || event->context != context->handle)
        return CUDA_ERROR_INVALID_HANDLE;
    const CallTime call(context->gpu->spec.context_record_time);
    if (WorkQueue::all_idle() && captures_in_progress == 0 && event->shared == nullptr) {
        // It is reached at once.
        if (event->flags & CU_EVENT_DISABLE_TIMING && !event->captured) {
            event->recorded = true;
            event->mark = {};
            return CUDA_SUCCESS;
        }
        const Record record = begin_record(*event);
        record.task();
        note_record(*event, record, {});
        return CUDA_SUCCESS;
    }
    std::vector<Stream*> all;
    CUSLICE_TRY(streams_of(*name, *context, all));
    // A queue of its own that waits for all of the context's.
    const std::vector<WorkQueue::Mark> marks = work_of(*context, name->green);
    const auto queue = std::make_shared<WorkQueue>();
    queue->keep_time(context->time);
    const Record record = begin_record(*event);
    queue->submit(record.task, marks, {{}, record.time});
    note_record(*event, record, queue->mark());
    return CUDA_SUCCESS;
}

CUresult wait_in(const Context* name, const Event* event) {
    if (name == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    Context* const context = context_of(*name);
    if (context == nullptr || event == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    std::vector<Stream*> all;
    CUSLICE_TRY(streams_of(*name, *context, all));
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (event_reached(*event))
        return CUDA_SUCCESS;
    for (Stream* stream : all)
        wait_in_queue(*stream->queue, *event);
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake

CUSLICE_ENTRY(cuCtxRecordEvent, handle, event) { return record_in(live_name(handle), events.find(event)); }

CUSLICE_ENTRY(cuCtxWaitEvent, handle, event) { return wait_in(live_name(handle), events.find(event)); }
