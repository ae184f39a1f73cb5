// SPDX-License-Identifier: Apache-2.0
// Events.

#include "fake/driver/event.h"
#include "fake/driver/lifetime.h"
#include "fake/driver/stream_capture.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/submit.h"
#include "fake/driver/timing.h"
#include "fake/driver/work_fault.h"

using namespace cuslice::fake;

namespace {

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags, DefaultStream form) {
    CUSLICE_FIND_IN(event, events, handle);
    if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, stream_handle, form);
    if (stream->context != event->context)
        return CUDA_ERROR_INVALID_HANDLE;
    const auto capture = stream->capture.get();
    // Documented: the flag is for captures alone. With which error is not.
    if (flags != 0)
        return capture == nullptr
                   ? CUDA_ERROR_INVALID_VALUE
                   : submit(*stream, captured_work(node_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, handle)));
    const CallTime call(event->gpu->spec.record_time);
    if (capture == nullptr)
        return record_in_stream(*stream, *event);
    if (event->shared != nullptr)
        return refuse_in_capture(*stream);
    if (!capture->active())
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    record_in_capture(capture, *stream, *event);
    return CUDA_SUCCESS;
}

CUresult record_plain(CUevent event, CUstream stream, DefaultStream form) { return record(event, stream, 0, form); }

CUresult destroy(CUevent event) { return events.destroy(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
    if (milliseconds == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const Event *first = events.find(start), *last = events.find(end);
    if (first == nullptr || last == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    if (first->captured || last->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (!first->recorded || !last->recorded || ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (first->gpu != last->gpu)
        return CUDA_ERROR_INVALID_HANDLE;  // each GPU has a clock of its own
    if (!WorkQueue::done(first->mark) || !WorkQueue::done(last->mark))
        return CUDA_ERROR_NOT_READY;
    for (const Event* event : {first, last})
        if (event->mark.queue != nullptr)
            event->mark.queue->note_times();
    const auto difference = static_cast<int64_t>(*last->time) - static_cast<int64_t>(*first->time);
    *milliseconds = static_cast<float>(static_cast<double>(difference) / 1e6);
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuEventCreate, out, flags) {
    constexpr unsigned kAll = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (out == nullptr || (flags & ~kAll) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    const auto between = shared ? SharedEvent::make() : nullptr;
    if (shared && between == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const Event made{.context = context->handle, .gpu = context->gpu, .flags = flags, .shared = between};
    *out = events.create(made).first;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY_PAIR(cuEventDestroy, destroy, event)

CUSLICE_STREAM_PAIR(cuEventRecord, record_plain, event, stream)
CUSLICE_STREAM_PAIR(cuEventRecordWithFlags, record, event, stream, flags)

CUSLICE_ENTRY(cuEventQuery, handle) {
    CUSLICE_FIND_IN(event, events, handle);
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    CUSLICE_TRY(refuse_unsafe());
    WorkQueue::look(event->mark);
    return event_reached(*event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUSLICE_ENTRY(cuEventSynchronize, handle) {
    CUSLICE_FIND_IN(event, events, handle);
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    CUSLICE_TRY(refuse_unsafe());
    wait_for_event(*event);
    Context* context = live_context(event->context);
    if (context == nullptr)
        return CUDA_SUCCESS;
    stream_synchronized(*context->gpu);
    return fault_of_work(*context);
}

CUSLICE_ENTRY_PAIR(cuEventElapsedTime, elapsed, milliseconds, start, end)
