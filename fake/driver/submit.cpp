// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/submit.h"

#include <thread>
#include <utility>

#include "fake/driver/model_time.h"
#include "fake/driver/stream_capture.h"
#include "fake/driver/time_client.h"
#include "fake/driver/work_fault.h"

namespace cuslice::fake {

/// Work in the legacy stream would have to wait for a stream that captures: both are refused.
static CUresult refuse_implicit_order(Stream& stream) {
    Context* context = stream.legacy && captures_in_progress != 0 ? live_context(stream.context) : nullptr;
    CUresult result = CUDA_SUCCESS;
    if (context == nullptr)
        return result;
    each_stream(*context, [&](Stream& other) {
        const auto capture = other.capture.get();
        if (capture == nullptr || !other.blocking() || other.green != stream.green)
            return;
        capture->invalidate();
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    });
    return result;
}

namespace {

/// Where no timekeeper says more, work that a GPU does itself takes model time; what only keeps an order takes none.
Task with_model_time(NodeType type, Task task) {
    const bool takes_time =
        type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
    if (!takes_time || time_client != nullptr)
        return task;
    return [task = std::move(task)] {
        task();
        spend_model_time();
    };
}

}  // namespace

CUresult submit(Stream& stream, NodeWork work) {
    if (stream.capture != nullptr) {
        return capture_node(stream, [&](CUgraph graph, const Dependencies& after, CUgraphNode& node) {
            node = append_node(graph, {.work = std::move(work), .after = after});
            return node != nullptr ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        });
    }
    return enqueue(stream, work.type, std::move(work.task), work.needs);
}

CUresult enqueue(Stream& stream, CUgraphNodeType type, Task task, const WorkQueue::Needs& needs) {
    CUSLICE_TRY(refuse_implicit_order(stream));
    stream.queue->submit(with_model_time(type, std::move(task)), implicit_order(stream), needs);
    return CUDA_SUCCESS;
}

CUresult submit_host(Stream& stream, NodeWork work) {
    if (stream.capture != nullptr)
        return submit(stream, std::move(work));
    CUSLICE_TRY(refuse_implicit_order(stream));
    stream.queue->submit_host(std::move(work.task), implicit_order(stream));
    return CUDA_SUCCESS;
}

CUresult refuse_in_capture(Stream& stream) {
    const auto capture = stream.capture.get();
    if (capture == nullptr)
        return CUDA_SUCCESS;
    capture->invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult synchronize(Stream& stream) {
    CUSLICE_TRY(refuse_in_capture(stream));
    for (const WorkQueue::Mark& mark : implicit_order(stream))
        WorkQueue::wait(mark);
    stream.queue->wait();
    Context* context = live_context(stream.context);
    return context == nullptr ? CUDA_SUCCESS : fault_of_work(*context);
}

CUresult record_in_stream(Stream& stream, Event& event) {
    const Record record = begin_record(event);
    const bool goes_on_aside = event.shared != nullptr && (WorkQueue::late() || time_client != nullptr);
    const CUresult result = submit(stream, {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                            .task = time_client != nullptr ? [] {} : record.task,
                                            .needs = {{}, record.time}});
    if (result != CUDA_SUCCESS) {
        record.task();
        return result;
    }
    note_record(event, record, stream.queue->mark());
    // Other processes can't make ours get on: for them it goes on by itself.
    if (goes_on_aside) {
        std::thread([mark = event.mark, reach = record.task] {
            WorkQueue::wait(mark);
            if (time_client != nullptr)
                reach();
        }).detach();
    }
    return CUDA_SUCCESS;
}

void wait_in_stream(Stream& stream, const Event& event) {
    if (!event_reached(event))
        wait_in_queue(*stream.queue, event);
}

}  // namespace cuslice::fake
