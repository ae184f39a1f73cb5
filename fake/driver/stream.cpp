// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/stream.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "fake/driver/green_context.h"

namespace cuslice::fake {

namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

std::atomic<uint64_t> last_id{0};
constinit std::mutex defaults_lock;

/// The default streams of one context or green context. Kept until the context is: another thread may be using one.
struct Defaults {
    CUcontext context = nullptr;  // the primary one of a green context
    std::unique_ptr<Stream> legacy;
    std::map<std::thread::id, std::unique_ptr<Stream>> per_thread;
};

auto& defaults() {
    static auto* all = new std::map<uint32_t, Defaults>;
    return *all;
}

/// The work of a stream that has ended.
struct Left {
    CUcontext context = nullptr;
    CUgreenCtx green = nullptr;
    bool blocking = false;
    std::shared_ptr<WorkQueue> queue;
};

/// With the lock held.
auto& left() {
    static auto* all = new std::vector<Left>;
    std::erase_if(*all, [](const Left& one) { return one.queue->idle(); });
    return *all;
}

CUcontext context_of(const Context& name) { return name.base != nullptr ? name.base->handle : name.handle; }
uint32_t time_of(const Context& name) { return name.base != nullptr ? name.base->time : name.time; }

/// With the lock held.
Defaults& defaults_of(const Context& name) {
    Defaults& found = defaults()[name.number];
    found.context = context_of(name);
    return found;
}

std::unique_ptr<Stream> new_default(const Context& name, CUstream handle) {
    auto stream = std::make_unique<Stream>();
    stream->handle = handle;
    stream->context = context_of(name);
    stream->green = name.green;
    stream->legacy = handle == CU_STREAM_LEGACY;
    stream->id = ++last_id;
    stream->queue->keep_time(time_of(name));
    return stream;
}

Stream& per_thread_stream(const Context& name) {
    const std::lock_guard hold(defaults_lock);
    auto& mine = defaults_of(name).per_thread[std::this_thread::get_id()];
    if (mine == nullptr)
        mine = new_default(name, CU_STREAM_PER_THREAD);
    return *mine;
}

}  // namespace

int clamped_priority(int priority) { return std::clamp(priority, kGreatestPriority, kLeastPriority); }

CUstream create_stream(const Context& name, unsigned flags, int priority) {
    // Complete before it can be found: another thread may be waiting for all streams of the context.
    Stream made;
    made.context = context_of(name);
    made.green = name.green;
    made.flags = flags;
    made.priority = clamped_priority(priority);
    made.id = ++last_id;
    made.queue->keep_time(time_of(name));
    const auto [handle, stream] = streams.create(std::move(made));
    stream->handle = handle;
    return handle;
}

Stream& legacy_stream(const Context& name) {
    const std::lock_guard hold(defaults_lock);
    auto& legacy = defaults_of(name).legacy;
    if (legacy == nullptr)
        legacy = new_default(name, CU_STREAM_LEGACY);
    return *legacy;
}

void forget_default_streams(const Context& context) {
    const std::lock_guard hold(defaults_lock);
    std::erase_if(defaults(), [&](const auto& entry) { return entry.second.context == context.handle; });
}

CUresult find_stream(CUstream handle, DefaultStream form, Stream*& stream) {
    if (handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        stream = streams.find(handle);
        if (stream == nullptr)
            return CUDA_ERROR_INVALID_HANDLE;
        return stream->green == nullptr || live_green(stream->green) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    CUSLICE_FIND_CURRENT(context);
    const bool per_thread = handle == CU_STREAM_PER_THREAD || (handle == nullptr && form == DefaultStream::PerThread);
    const Context& name = *contexts.find(current_handle);
    stream = per_thread ? &per_thread_stream(name) : &legacy_stream(name);
    return CUDA_SUCCESS;
}

/// Calls f(stream) for every stream of one context, or of all contexts if it is null.
static void each_stream_in(CUcontext context, const std::function<void(Stream&)>& f) {
    streams.each_held([&](CUstream, Stream& stream) {
        if (context == nullptr || stream.context == context)
            f(stream);
    });
    std::vector<Stream*> own;
    {
        const std::lock_guard hold(defaults_lock);
        for (auto& [number, found] : defaults()) {
            if (context != nullptr && found.context != context)
                continue;
            if (found.legacy != nullptr)
                own.push_back(found.legacy.get());
            for (auto& [thread, stream] : found.per_thread)
                own.push_back(stream.get());
        }
    }
    for (Stream* stream : own)
        f(*stream);
}

void each_stream(Context& context, const std::function<void(Stream&)>& f) { each_stream_in(context.handle, f); }

void each_stream(const std::function<void(Stream&)>& f) { each_stream_in(nullptr, f); }

std::vector<WorkQueue::Mark> implicit_order(Stream& stream) {
    std::vector<WorkQueue::Mark> marks;
    Context* context = live_context(stream.context);
    if (context == nullptr || !stream.blocking())
        return marks;
    if (!stream.legacy) {
        // A green context has a default stream of its own.
        const Context* name = stream.green == nullptr ? context : name_of_green(stream.green);
        if (name == nullptr)
            return marks;
        Stream& legacy = legacy_stream(*name);
        if (!legacy.queue->idle())
            marks.push_back(legacy.queue->mark());
        return marks;
    }
    each_stream(*context, [&](Stream& other) {
        if (&other == &stream || other.green != stream.green)
            return;
        if (other.blocking() && !other.queue->idle())
            marks.push_back(other.queue->mark());
    });
    const std::lock_guard hold(defaults_lock);
    for (const Left& one : left())
        if (one.context == context->handle && one.blocking && one.green == stream.green)
            marks.push_back(one.queue->mark());
    return marks;
}

void leave_work(const Stream& stream) {
    if (stream.queue->idle())
        return;
    const std::lock_guard hold(defaults_lock);
    left().push_back({stream.context, stream.green, stream.blocking(), stream.queue});
}

std::vector<WorkQueue::Mark> work_of(Context& context, CUgreenCtx green) {
    std::vector<WorkQueue::Mark> marks;
    each_stream(context, [&](Stream& stream) {
        if (green == nullptr || stream.green == green)
            marks.push_back(stream.queue->mark());
    });
    const std::lock_guard hold(defaults_lock);
    for (const Left& one : left())
        if (one.context == context.handle && (green == nullptr || one.green == green))
            marks.push_back(one.queue->mark());
    return marks;
}

}  // namespace cuslice::fake
