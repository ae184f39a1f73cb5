// Events.

#include <thread>

#include "fake/driver/event.h"
#include "fake/driver/lifetime.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/work_fault.h"

using namespace cuslice::fake;

namespace {

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags, DefaultStream form) {
    Event* event = events.find(handle);
    Stream* stream = nullptr;
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = find_stream(stream_handle, form, stream); bad != CUDA_SUCCESS) return bad;
    if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
    if (event->shared != nullptr) {
        if (const CUresult bad = refuse_in_capture(*stream); bad != CUDA_SUCCESS) return bad;
    }
    const Record record = begin_record(*event);
    const CUresult result = submit(*stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, record.task);
    if (result != CUDA_SUCCESS) {
        record.task();
        return result;
    }
    event->capture = stream->capture;
    note_record(*event, record, stream->lane->mark());
    // Other processes can't make ours get on: for them it goes on by itself.
    if (event->shared != nullptr && Lane::late()) std::thread([mark = event->mark] { Lane::wait(mark); }).detach();
    return CUDA_SUCCESS;
}

CUresult record_plain(CUevent event, CUstream stream, DefaultStream form) { return record(event, stream, 0, form); }

/// Work that is submitted to the stream later waits for the event; one that was never recorded is no obstacle.
CUresult wait_event(CUstream handle, CUevent event_handle, unsigned flags, DefaultStream form) {
    Stream* stream = nullptr;
    const Event* event = events.find(event_handle);
    if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = find_stream(handle, form, stream); bad != CUDA_SUCCESS) return bad;
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto capture = event->capture.lock()) {
        // Waiting for captured work makes a stream part of the capture. Its nodes run one after the other in any case.
        if (stream->capture == nullptr && !stream->legacy) stream->capture = capture;
        return stream->capture == capture ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (event_reached(*event)) return CUDA_SUCCESS;
    if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    wait_in_lane(*stream->lane, *event);
    return CUDA_SUCCESS;
}

CUresult destroy(CUevent event) { return events.destroy(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Event *first = events.find(start), *last = events.find(end);
    if (first == nullptr || last == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!first->recorded || !last->recorded || ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!Lane::done(first->mark) || !Lane::done(last->mark)) return CUDA_ERROR_NOT_READY;
    const auto difference = static_cast<std::int64_t>(*last->time) - static_cast<std::int64_t>(*first->time);
    *milliseconds = static_cast<float>(static_cast<double>(difference) / 1e6);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuEventCreate(CUevent* out, unsigned int flags) {
    CUSLICE_ENTER(cuEventCreate)
    Context* context = nullptr;
    constexpr unsigned all = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (out == nullptr || (flags & ~all) != 0) return CUDA_ERROR_INVALID_VALUE;
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    auto between = shared ? SharedEvent::make() : nullptr;
    if (shared && between == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    Event made;
    made.shared = std::move(between);
    made.context = context->handle;
    made.flags = flags;
    *out = events.create(std::move(made)).first;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event) {
    CUSLICE_ENTER(cuEventDestroy)
    return destroy(event);
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
    CUSLICE_ENTER(cuEventDestroy_v2)
    return destroy(event);
}

CUSLICE_STREAM_PAIR(cuEventRecord, record_plain, (CUevent event, CUstream stream), event, stream)
CUSLICE_STREAM_PAIR(cuEventRecordWithFlags, record, (CUevent event, CUstream stream, unsigned int flags), event, stream,
                    flags)
CUSLICE_STREAM_PAIR(cuStreamWaitEvent, wait_event, (CUstream stream, CUevent event, unsigned int flags), stream, event,
                    flags)

CUresult CUDAAPI cuEventQuery(CUevent handle) {
    CUSLICE_ENTER(cuEventQuery)
    const Event* event = events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->capture.expired()) return CUDA_ERROR_CAPTURED_EVENT;
    Lane::look(event->mark);
    return event_reached(*event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
    CUSLICE_ENTER(cuEventSynchronize)
    const Event* event = events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->capture.expired()) return CUDA_ERROR_CAPTURED_EVENT;
    wait_for_event(*event);
    Context* context = live_context(event->context);
    if (context == nullptr) return CUDA_SUCCESS;
    stream_synchronized(*context->gpu);
    return fault_of_work(*context);
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    CUSLICE_ENTER(cuEventElapsedTime)
    return elapsed(milliseconds, start, end);
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    CUSLICE_ENTER(cuEventElapsedTime_v2)
    return elapsed(milliseconds, start, end);
}
