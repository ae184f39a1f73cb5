// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual_gpu/interleave/made_up_gpu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "tests/virtual_gpu/interleave/made_up_state.h"
#include "virtual_gpu/driver/nvml_table.h"

namespace cuslice::tests {

namespace {

constexpr CUdeviceptr kFirstAddress = 1ull << 40;
constexpr uint64_t kGranule = 2 << 20;

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
void put(NvmlFunction function, F* implementation) {
    cuslice_physical_nvml_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

}  // namespace

void MadeUpGpu::State::end(CUcontext context) {
    Context* const known = find(context, "a context ends twice");
    if (!known)
        return;
    if (known->threads)
        fails("a context ends while a thread is in it", CUDA_SUCCESS);
    const auto is_of = [&](const auto& one) { return one.second.context == context; };
    for (auto at = memory.begin(); at != memory.end();) {
        const auto ending = at++;
        if (!is_of(*ending))
            continue;
        std::erase_if(blocks, [&](const auto& block) {
            return overlap(block.first, block.second.bytes, ending->first, ending->second.bytes);
        });
        remove_memory(ending);
    }
    std::erase_if(events, is_of);
    std::erase_if(streams, is_of);
    uses.erase(context);
    contexts.erase(context);
}

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
    state_->end(context);
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
