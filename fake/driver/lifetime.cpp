// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/lifetime.h"

#include "fake/driver/array.h"
#include "fake/driver/event.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/green_context.h"
#include "fake/driver/host_memory.h"
#include "fake/driver/module.h"
#include "fake/driver/pool.h"
#include "fake/driver/state.h"
#include "fake/driver/stream.h"
#include "fake/driver/submit.h"
#include "fake/driver/texture.h"
#include "fake/driver/time_client.h"
#include "fake/driver/work_fault.h"

namespace cuslice::fake {

namespace {

// Other threads may be making and ending such of other contexts.
template <typename Handle, typename Table>
void end_those_of(CUcontext context, Table& table, std::vector<Handle> owned = {}) {
    table.each_held([&](Handle handle, const auto& object) {
        if (object.context == context)
            owned.push_back(handle);
    });
    for (Handle handle : owned)
        table.destroy(handle);
}

void end_owned_by(Context& context) {
    end_those_of<CUstream>(context.handle, streams);
    end_those_of<CUevent>(context.handle, events);
    forget_default_streams(context);
    end_modules(context);
    end_those_of<CUtexObject>(context.handle, textures);
    end_those_of<CUsurfObject>(context.handle, surfaces);
    end_arrays(context);
    // With the primary context goes all that belongs to the device and not to a context of its own.
    if (context.primary) {
        end_greens(context);
        end_pools(*context.gpu);
        end_graph_pool(*context.gpu);
    }
    end_host_memory(context.handle);
    trim_to_thresholds(*context.gpu);
}

}  // namespace

void drain_streams(Context& context) {
    for (const WorkQueue::Mark& mark : work_of(context))
        WorkQueue::wait(mark);
}

void end_context(Context& context) {
    Gpu& gpu = *context.gpu;
    context.active = false;
    end_owned_by(context);
    if (time_client != nullptr)
        time_client->close_context(context.time);
    gpu.free_all(context.number);
    gpu.release(gpu.spec.context + thread_bytes(context));
    gpu.books.note_contexts(-static_cast<int64_t>(gpu.spec.context), -1);
    context.peers.clear();
    contexts.each([&](CUcontext, Context& other) { other.peers.erase(context.handle); });
    if (!context.primary)
        contexts.destroy(context.handle);
}

void stream_synchronized(Gpu& gpu) {
    const DriverLock hold;
    trim_to_thresholds(gpu);
}

CUresult synchronize_context(Context& context) {
    CUresult result = CUDA_SUCCESS;
    if (WorkQueue::all_idle() && captures_in_progress == 0 && !pools_have_held())
        return result;
    each_stream(context, [&](Stream& stream) {
        if (const CUresult bad = refuse_in_capture(stream); bad != CUDA_SUCCESS)
            result = bad;
    });
    if (result != CUDA_SUCCESS)
        return result;
    drain_streams(context);
    {
        const DriverLock hold;
        trim_to_thresholds(*context.gpu);
    }
    return fault_of_work(context);
}

}  // namespace cuslice::fake
