// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the hooks whose calls are written down where the program is recorded (shim/process/recording.h).
#include "shim/driver/report.h"
#include "shim/entry.h"

namespace cuslice {

// Stands around a call that is written down: the thread is not cancelled between the driver's answer and its row, and
// calls inside this one are not the program's. Inlined, as the frame that OnStack goes by is the caller's.
class RecordedCall {
  public:
    [[gnu::always_inline]] RecordedCall() : records_(process().records() && !inside_hook && !inside()) {
        if (records_)
            outermost.begin(&place_, OnStack::Hold::by_calls);
    }
    [[gnu::always_inline]] ~RecordedCall() {
        if (!records_)
            return;
        report_recording();
        outermost.end();
    }
    RecordedCall(const RecordedCall&) = delete;
    RecordedCall& operator=(const RecordedCall&) = delete;

    // False: hand the call on as it is.
    bool records() const { return records_; }

  private:
    static constinit thread_local OnStack outermost;
    static bool inside() {
        if (!outermost.any())
            return false;
        const bool still = outermost.judge(__builtin_frame_address(0)) == OnStack::Judgement::inside;
        if (!still)
            outermost.forget();
        return still;
    }
    bool records_;
    volatile uint64_t place_ = 0;
};

inline uint64_t number_of(CUstream stream, bool per_thread) {
    return reinterpret_cast<uintptr_t>(stream || !per_thread ? stream : CU_STREAM_PER_THREAD);
}

// The result of an allocation. `bytes`: as the program asked for them; `gpu` may be null, when it isn't known.
inline void note_allocation(CUresult result, uint64_t address, uint64_t bytes, uint64_t stream, Contexts::Id context,
                            const VirtualGpu* gpu) {
    const int ordinal = gpu ? gpu->ordinal() : Recording::kNoGpu;
    Recording& recording = process().recording();
    if (result == CUDA_SUCCESS && address)
        recording.allocated({address, bytes, context, ordinal}, stream);
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        recording.refused(bytes, stream, ordinal);
}

// An allocation of the current context's. `bytes` is asked after the call.
template <typename Pointer, typename Bytes, typename Call>
CUresult recorded_allocation(const Pointer* pointer, Bytes bytes, Call call) {
    const RecordedCall recorded;
    const CUresult result = call();
    if (!recorded.records() || !pointer)
        return result;
    const Process::Current& current = process().current();
    note_allocation(result, result == CUDA_SUCCESS ? *pointer : 0, bytes(result), 0, current.context, current.gpu);
    return result;
}

// A free. The row comes first: afterwards another thread may have the address. If the memory stays the program's after
// all, it is allocated again.
template <typename Call>
CUresult recorded_free(CUdeviceptr address, uint64_t stream, Call call) {
    const RecordedCall recorded;
    Recording& recording = process().recording();
    Recording::Block block;
    const bool known = recorded.records() && address && recording.freed(address, stream, &block);
    const CUresult result = call();
    if (known && result != CUDA_SUCCESS)
        recording.allocated(block, stream);
    return result;
}

// A context's end, and with it that of its blocks; inside a hook that counts it.
template <typename Call>
CUresult recorded_end(CUcontext context, Call call) {
    if (!process().records() || !context)
        return call();
    Recording& recording = process().recording();
    PageVector<Recording::Block> blocks;
    recording.context_ends(gpu_state().contexts.known_id(context), &blocks);
    const CUresult result = call();
    if (result != CUDA_SUCCESS)
        for (const Recording::Block& block : blocks)
            recording.allocated(block, 0);
    blocks.release();
    report_recording();
    return result;
}

}  // namespace cuslice
