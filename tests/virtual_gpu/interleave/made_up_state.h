// SPDX-License-Identifier: Apache-2.0
// State of a made-up driver, for the files of its functions.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "tests/interleave/steps.h"
#include "tests/virtual_gpu/interleave/made_up_gpu.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice::tests {

struct Context {
    uint64_t given = 0, past = 0;  // pieces of work: in all, and that the GPU has come past
    unsigned threads = 0;          // that cuslice has put into it
};
struct Event {
    CUcontext context = nullptr;
    uint64_t at = 0;  // the last piece of work before it
};
struct Stream {
    CUcontext context = nullptr;
    bool capturing = false;
};
struct Memory {
    CUcontext context = nullptr;
    uint64_t bytes = 0;
};
struct Block {
    uint64_t bytes = 0;
};
/// Work that touches memory.
struct Use {
    CUdeviceptr address = 0;
    uint64_t bytes = 0, at = 0;
    auto operator<=>(const Use&) const = default;
};

/// This thread's contexts.
struct Stack {
    static constexpr unsigned kMost = 4;
    CUcontext all[kMost] = {};
    unsigned count = 0;

    CUcontext top() const { return count ? all[count - 1] : nullptr; }
};
inline thread_local Stack stack;
inline thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

inline bool overlap(CUdeviceptr one, uint64_t bytes, CUdeviceptr other, uint64_t others) {
    return one < other + others && other < one + bytes;
}

struct MadeUpGpu::State {
    uint64_t limit = 0, held = 0, own = 0, events_made = 0;
    const char* fault = "";
    std::map<CUcontext, Context> contexts;
    std::map<CUcontext, std::set<Use>> uses;
    std::map<CUevent, Event> events;
    std::map<CUstream, Stream> streams;
    std::map<CUdeviceptr, Memory> memory;
    std::map<CUdeviceptr, Block> blocks;

    CUresult fails(const char* why, CUresult result) {
        if (!*fault)
            fault = why;
        return result;
    }
    Context* find(CUcontext context, const char* why) {
        const auto at = contexts.find(context);
        if (at != contexts.end())
            return &at->second;
        fails(why, CUDA_SUCCESS);
        return nullptr;
    }
    Event* find(CUevent event) {
        const auto at = events.find(event);
        if (at != events.end())
            return &at->second;
        fails("an event that is no more", CUDA_SUCCESS);
        return nullptr;
    }
    /// A call that is unsafe where any stream is captured, unless this thread's mode is relaxed.
    void unsafe(const char* why) {
        if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            return;
        for (const auto& [handle, stream] : streams)
            if (stream.capturing)
                fails(why, CUDA_SUCCESS);
    }
    /// A call that ends captures in the context in any mode.
    void unsafe_in(CUcontext context, const char* why) {
        for (const auto& [handle, stream] : streams)
            if (stream.capturing && stream.context == context)
                fails(why, CUDA_SUCCESS);
    }
    void pass() {
        for (auto& [handle, context] : contexts)
            context.past = context.given;
        uses.clear();
    }
    /// With all that is of it.
    void end(CUcontext context);
    void remove_memory(std::map<CUdeviceptr, Memory>::iterator at) {
        held -= at->second.bytes;
        memory.erase(at);
    }
};

/// The one that the driver's functions are of.
inline MadeUpGpu::State* now = nullptr;

/// A call of the driver: another thread may go on before and after it.
class Call {
  public:
    Call() { before_step(); }
    ~Call() { before_step(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
};

template <typename F>
void put(Function function, F* implementation) {
    cuslice_driver_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

}  // namespace cuslice::tests
