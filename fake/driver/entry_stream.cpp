// SPDX-License-Identifier: Apache-2.0
// Streams: their life, waiting for them, what they are.

#include "fake/driver/addresses.h"
#include "fake/driver/event.h"
#include "fake/driver/green_context.h"
#include "fake/driver/lifetime.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_capture.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/submit.h"

using namespace cuslice::fake;

namespace {

CUresult create(CUstream* out, unsigned flags, int priority) {
    if (out == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    *out = create_stream(*contexts.find(current_handle), flags, priority);
    return CUDA_SUCCESS;
}

/// Work that is under way ends by itself; the handle is gone at once.
CUresult destroy(CUstream handle) {
    CUSLICE_FIND_IN(stream, streams, handle);
    if (stream->green != nullptr && !live_green(stream->green))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (const auto capture = stream->capture.get(); capture != nullptr && capture->origin == handle) {
        end_capture(capture);
        if (!capture->into_given)
            destroy_graph(capture->graph);
    }
    leave_work(*stream);
    return streams.destroy(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult query(CUstream handle, DefaultStream form) {
    CUSLICE_FIND_STREAM(stream, handle, form);
    CUSLICE_TRY(refuse_in_capture(*stream));
    CUSLICE_TRY(refuse_unsafe());
    WorkQueue::look(stream->queue->mark());
    for (const WorkQueue::Mark& mark : implicit_order(*stream))
        WorkQueue::look(mark);
    return stream->queue->idle() && implicit_order(*stream).empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult wait_for(CUstream handle, DefaultStream form) {
    CUSLICE_FIND_STREAM(stream, handle, form);
    CUSLICE_TRY(refuse_in_capture(*stream));
    CUSLICE_TRY(refuse_unsafe());
    CUSLICE_TRY(synchronize(*stream));
    Context* context = live_context(stream->context);
    if (context != nullptr)
        stream_synchronized(*context->gpu);
    return CUDA_SUCCESS;
}

template <auto kMember>
constexpr auto get = [](CUstream handle, auto* out, DefaultStream form) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    *out = stream->*kMember;
    return CUDA_SUCCESS;
};

CUresult get_context(CUstream handle, CUcontext* out, DefaultStream form) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    *out = stream->green != nullptr ? name_of_green(stream->green)->handle : stream->context;
    return CUDA_SUCCESS;
}

CUresult get_context_2(CUstream handle, CUcontext* out, CUgreenCtx* green, DefaultStream form) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const Context* current = live_name(current_handle);
    if (handle == CU_STREAM_PER_THREAD && current != nullptr && current->green != nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    *out = stream->context;
    if (green != nullptr)
        *green = stream->green;
    return CUDA_SUCCESS;
}

/// Not of a stream that is captured, whose context can be asked for all the same.
CUresult get_device(CUstream handle, CUdevice* out, DefaultStream form) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    CUSLICE_TRY(refuse_in_capture(*stream));
    const Context* context = live_context(stream->context);
    if (context == nullptr)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out = context->gpu->ordinal;
    return CUDA_SUCCESS;
}

CUresult attach_memory(CUstream handle, CUdeviceptr address, size_t length, unsigned flags, DefaultStream form) {
    const bool one_flag = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    if (!one_flag)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    const Found found = find_block(address);
    if (!found || found.record.kind != BlockKind::Managed || (length != 0 && length != found.record.asked)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;  // the host may touch managed memory here at any time, whatever it is attached to
}

/// Work that is submitted to the stream later waits for the event; one that was never recorded is no obstacle.
CUresult wait_event(CUstream handle, CUevent event_handle, unsigned flags, DefaultStream form) {
    const Event* event = events.find(event_handle);
    if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    if (event == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    const auto capture = stream->capture.get();
    // Documented: the flag is for captures alone. With which error is not.
    if (flags != 0)
        return capture == nullptr
                   ? CUDA_ERROR_INVALID_VALUE
                   : submit(*stream, captured_work(node_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_handle)));
    if (event->captured)
        return wait_in_capture(*stream, *event);
    if (capture != nullptr && event->recorded) {
        capture->invalidate();
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    wait_in_stream(*stream, *event);
    return CUDA_SUCCESS;
}

CUresult add_callback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags, DefaultStream form) {
    if (callback == nullptr || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    CUSLICE_TRY(refuse_in_capture(*stream));
    return submit_host(*stream,
                       {CU_GRAPH_NODE_TYPE_HOST, [handle, callback, data] { callback(handle, CUDA_SUCCESS, data); }});
}

}  // namespace

CUSLICE_ENTRY(cuStreamCreate, out, flags) { return create(out, flags, 0); }

CUSLICE_ENTRY(cuStreamCreateWithPriority, out, flags, priority) { return create(out, flags, priority); }

CUSLICE_ENTRY_PAIR(cuStreamDestroy, destroy, stream)

CUSLICE_STREAM_PAIR(cuStreamQuery, query, stream)
CUSLICE_STREAM_PAIR(cuStreamSynchronize, wait_for, stream)
CUSLICE_STREAM_PAIR(cuStreamGetPriority, get<&Stream::priority>, stream, out)
CUSLICE_STREAM_PAIR(cuStreamGetFlags, get<&Stream::flags>, stream, out)
CUSLICE_STREAM_PAIR(cuStreamGetId, get<&Stream::id>, stream, out)
CUSLICE_STREAM_PAIR(cuStreamGetCtx, get_context, stream, out)
CUSLICE_STREAM_PAIR(cuStreamGetCtx_v2, get_context_2, stream, out, green)
CUSLICE_STREAM_PAIR(cuStreamGetDevice, get_device, stream, out)
CUSLICE_STREAM_PAIR(cuStreamAttachMemAsync, attach_memory, stream, address, length, flags)
CUSLICE_STREAM_PAIR(cuStreamWaitEvent, wait_event, stream, event, flags)
CUSLICE_STREAM_PAIR(cuStreamAddCallback, add_callback, stream, callback, data, flags)
