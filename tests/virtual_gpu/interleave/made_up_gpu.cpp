// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual_gpu/interleave/made_up_gpu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "tests/interleave/steps.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice::tests {

namespace {

constexpr CUdeviceptr kFirstAddress = 1ull << 40;
constexpr uint64_t kGranule = 2 << 20;

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
// Work that touches memory.
struct Use {
    CUdeviceptr address = 0;
    uint64_t bytes = 0, at = 0;
    auto operator<=>(const Use&) const = default;
};

bool overlap(CUdeviceptr one, uint64_t bytes, CUdeviceptr other, uint64_t others) {
    return one < other + others && other < one + bytes;
}

// This thread's contexts.
struct Stack {
    static constexpr unsigned kMost = 4;
    CUcontext all[kMost] = {};
    unsigned count = 0;

    CUcontext top() const { return count ? all[count - 1] : nullptr; }
};
thread_local Stack stack;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

}  // namespace

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
    // A call that is unsafe where any stream is captured, unless this thread's mode is relaxed.
    void unsafe(const char* why) {
        if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            return;
        for (const auto& [handle, stream] : streams)
            if (stream.capturing)
                fails(why, CUDA_SUCCESS);
    }
    // A call that ends captures in the context in any mode.
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
    void remove_memory(std::map<CUdeviceptr, Memory>::iterator at) {
        held -= at->second.bytes;
        memory.erase(at);
    }
};

namespace {

MadeUpGpu::State* now = nullptr;

// A call: another thread may go on before and after it.
class Call {
  public:
    Call() { before_step(); }
    ~Call() { before_step(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
};

CUresult CUDAAPI get_current(CUcontext* into) {
    *into = stack.top();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI set_current(CUcontext context) {
    if (stack.count)
        stack.count--;
    if (context)
        stack.all[stack.count++] = context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI push_current(CUcontext context) {
    const Call call;
    Context* const known = now->find(context, "a context that has ended is pushed");
    if (!known)
        return CUDA_ERROR_INVALID_CONTEXT;
    known->threads++;
    stack.all[stack.count++] = context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI pop_current(CUcontext* into) {
    const Call call;
    *into = stack.top();
    Context* const known = now->find(*into, "a context that has ended is popped");
    if (!known)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    known->threads--;
    stack.count--;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI synchronize_v2(CUcontext context) {
    const Call call;
    Context* const known = now->find(context, "a context that has ended is waited for");
    if (!known)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    now->unsafe_in(context, "a context is waited for that captures");
    known->past = known->given;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI synchronize() { return synchronize_v2(stack.top()); }

CUresult CUDAAPI record(CUcontext context, CUevent event) {
    const Call call;
    Context* const known = now->find(context, "an event is recorded in a context that has ended");
    Event* const recorded = now->find(event);
    if (!known || !recorded || recorded->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    now->unsafe_in(context, "an event is recorded in a context that captures");
    recorded->at = known->given;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI make_event(CUevent* into, unsigned) {
    const Call call;
    if (!now->find(stack.top(), "an event is made in a context that has ended"))
        return CUDA_ERROR_INVALID_CONTEXT;
    *into = reinterpret_cast<CUevent>(++now->events_made << 4);
    now->events[*into].context = stack.top();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI destroy_event(CUevent event) {
    const Call call;
    if (!now->find(event))
        return CUDA_ERROR_INVALID_HANDLE;
    now->events.erase(event);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI query_event(CUevent event) {
    const Call call;
    const Event* const known = now->find(event);
    if (!known)
        return CUDA_ERROR_INVALID_HANDLE;
    now->unsafe("an event is asked while a stream is captured");
    return now->contexts[known->context].past >= known->at ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI wait_for_event(CUevent event) {
    const Call call;
    const Event* const known = now->find(event);
    if (!known)
        return CUDA_ERROR_INVALID_HANDLE;
    now->unsafe("an event is waited for while a stream is captured");
    uint64_t& past = now->contexts[known->context].past;
    past = std::max(past, known->at);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI context_of_stream(CUstream stream, CUcontext* into) {
    const Call call;
    const auto at = now->streams.find(stream);
    if (at == now->streams.end())
        return now->fails("the context of a stream that is no more", CUDA_ERROR_INVALID_HANDLE);
    *into = at->second.context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI is_capturing(CUstream stream, CUstreamCaptureStatus* into) {
    const Call call;
    const auto at = now->streams.find(stream);
    if (at == now->streams.end())
        return now->fails("the capture of a stream that is no more", CUDA_ERROR_INVALID_HANDLE);
    *into = at->second.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI exchange_mode(CUstreamCaptureMode* mode) {
    std::swap(*mode, capture_mode);
    return CUDA_SUCCESS;
}

// That a capture forbids it is the program's to know, which asks for memory in the midst of one.
CUresult CUDAAPI allocate(CUdeviceptr* into, size_t bytes) {
    const Call call;
    if (!now->find(stack.top(), "memory is taken in a context that has ended"))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (now->held + bytes > now->limit)
        now->fails("more memory than the limit", CUDA_SUCCESS);
    CUdeviceptr address = kFirstAddress;
    for (const auto& [begin, memory] : now->memory) {
        if (begin - address >= bytes)
            break;
        address = (begin + memory.bytes + kGranule - 1) / kGranule * kGranule;
    }
    now->memory[address] = {stack.top(), bytes};
    now->held += bytes;
    *into = address;
    return CUDA_SUCCESS;
}

// Waits for all work on the GPU.
CUresult CUDAAPI free_memory(CUdeviceptr address) {
    const Call call;
    if (!now->find(stack.top(), "memory is freed in a context that has ended"))
        return CUDA_ERROR_INVALID_CONTEXT;
    now->unsafe("memory is freed while a stream is captured");
    const auto at = now->memory.find(address);
    if (at == now->memory.end())
        return now->fails("memory is freed that nobody has", CUDA_ERROR_INVALID_VALUE);
    for (const auto& [block, known] : now->blocks)
        if (overlap(block, known.bytes, address, at->second.bytes))
            now->fails("memory is freed in which the program has a block", CUDA_SUCCESS);
    now->pass();
    now->remove_memory(at);
    return CUDA_SUCCESS;
}

nvmlReturn_t initialise() { return NVML_SUCCESS; }

nvmlReturn_t device_by_uuid(const char*, nvmlDevice_t* device) {
    *device = reinterpret_cast<nvmlDevice_t>(1 << 4);
    return NVML_SUCCESS;
}

nvmlReturn_t driver_version(char* text, unsigned size) {
    std::snprintf(text, size, "580.95.05");
    return NVML_SUCCESS;
}

nvmlReturn_t list_processes(nvmlDevice_t, unsigned* count, nvmlProcessInfo_t* processes) {
    const Call call;
    *count = 1;
    processes[0] = {};
    processes[0].pid = static_cast<unsigned>(getpid());
    processes[0].usedGpuMemory = now->held;
    return NVML_SUCCESS;
}

nvmlReturn_t list_no_processes(nvmlDevice_t, unsigned* count, nvmlProcessInfo_t*) {
    *count = 0;
    return NVML_SUCCESS;
}

template <typename F>
void put(Function function, F* implementation) {
    cuslice_driver_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

template <typename F>
void put(NvmlFunction function, F* implementation) {
    cuslice_physical_nvml_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

}  // namespace

MadeUpGpu::MadeUpGpu(uint64_t limit, Modes modes) : state_(std::make_unique<State>()) {
    state_->limit = limit;
    now = state_.get();
    using enum Function;
    put(cuCtxGetCurrent, get_current);
    put(cuCtxSetCurrent, tests::set_current);
    put(cuCtxPushCurrent_v2, push_current);
    put(cuCtxPopCurrent_v2, pop_current);
    put(cuCtxSynchronize, synchronize);
    put(cuCtxSynchronize_v2, synchronize_v2);
    put(cuCtxRecordEvent, record);
    put(cuEventCreate, make_event);
    put(cuEventDestroy_v2, destroy_event);
    put(cuEventQuery, query_event);
    put(cuEventSynchronize, wait_for_event);
    put(cuStreamGetCtx, context_of_stream);
    put(cuStreamIsCapturing, is_capturing);
    put(cuThreadExchangeStreamCaptureMode, modes == Modes::some ? exchange_mode : nullptr);
    put(cuMemAlloc_v2, allocate);
    put(cuMemFree_v2, free_memory);
    put(NvmlFunction::nvmlInit_v2, initialise);
    put(NvmlFunction::nvmlDeviceGetHandleByUUID, device_by_uuid);
    put(NvmlFunction::nvmlSystemGetDriverVersion, driver_version);
    put(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3, list_processes);
    put(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3, list_no_processes);
}

MadeUpGpu::~MadeUpGpu() { now = nullptr; }

const char* MadeUpGpu::fault() const { return state_->fault; }
uint64_t MadeUpGpu::held() const { return state_->held; }
uint64_t MadeUpGpu::own() const { return state_->own; }

void MadeUpGpu::take(int64_t bytes) {
    const Call call;
    state_->held += static_cast<uint64_t>(bytes);
    state_->own += static_cast<uint64_t>(bytes);
}

void MadeUpGpu::set_current(CUcontext context) {
    stack = {};
    if (context)
        stack.all[stack.count++] = context;
}

void MadeUpGpu::make_context(CUcontext context) {
    const Call call;
    state_->contexts[context] = {};
}

void MadeUpGpu::end_context(CUcontext context) {
    const Call call;
    Context* const known = state_->find(context, "a context ends twice");
    if (!known)
        return;
    if (known->threads)
        state_->fails("a context ends while a thread is in it", CUDA_SUCCESS);
    const auto is_of = [&](const auto& one) { return one.second.context == context; };
    for (auto at = state_->memory.begin(); at != state_->memory.end();) {
        const auto memory = at++;
        if (!is_of(*memory))
            continue;
        std::erase_if(state_->blocks, [&](const auto& block) {
            return overlap(block.first, block.second.bytes, memory->first, memory->second.bytes);
        });
        state_->remove_memory(memory);
    }
    std::erase_if(state_->events, is_of);
    std::erase_if(state_->streams, is_of);
    state_->uses.erase(context);
    state_->contexts.erase(context);
    if (stack.top() == context)
        stack.count--;
}

void MadeUpGpu::launch(CUcontext context, CUdeviceptr block, uint64_t bytes) {
    const Call call;
    if (Context* const known = state_->find(context, "work of a context that has ended"))
        state_->uses[context].insert({block, bytes, ++known->given});
}

void MadeUpGpu::pass() {
    const Call call;
    state_->pass();
}

void MadeUpGpu::make_stream(CUstream stream, CUcontext context) {
    const Call call;
    state_->streams[stream] = {context, false};
}

void MadeUpGpu::destroy_stream(CUstream stream) {
    const Call call;
    state_->streams.erase(stream);
}

void MadeUpGpu::begin_capture(CUstream stream) {
    const Call call;
    state_->streams.at(stream).capturing = true;
}

void MadeUpGpu::end_capture(CUstream stream) {
    const Call call;
    state_->streams.at(stream).capturing = false;
}

void MadeUpGpu::hand_out(CUdeviceptr block, uint64_t bytes) {
    const auto contains = [&](const auto& memory) {
        return memory.first <= block && block + bytes <= memory.first + memory.second.bytes;
    };
    if (std::ranges::none_of(state_->memory, contains))
        state_->fails("a block in no memory of the driver's", CUDA_SUCCESS);
    for (const auto& [other, known] : state_->blocks)
        if (overlap(block, bytes, other, known.bytes))
            state_->fails("a block that somebody has", CUDA_SUCCESS);
    for (const auto& [context, uses] : state_->uses)
        for (const Use& use : uses)
            if (use.at > state_->contexts[context].past && overlap(block, bytes, use.address, use.bytes))
                state_->fails("a block that the GPU may still touch", CUDA_SUCCESS);
    state_->blocks[block] = {bytes};
}

void MadeUpGpu::take_back(CUdeviceptr block) { state_->blocks.erase(block); }

}  // namespace cuslice::tests
