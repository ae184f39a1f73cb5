// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual_gpu/interleave/made_up_primaries.h"

#include <algorithm>
#include <array>
#include <map>

#include "tests/virtual_gpu/interleave/made_up_state.h"

namespace cuslice::tests {

struct MadeUpPrimaries::State {
    std::array<unsigned, kGpus> uses{};
    std::map<CUmemoryPool, CUdevice> pools;
    uintptr_t pools_made = 0;

    bool knows(CUdevice gpu) const { return gpu >= 0 && gpu < kGpus; }
    void end_pools(CUdevice gpu) {
        std::erase_if(pools, [gpu](const auto& pool) { return pool.second == gpu; });
    }
};

namespace {

MadeUpPrimaries::State* primaries = nullptr;

CUdevice gpu_of(CUcontext context) { return context == real_of(1) ? 1 : 0; }

/// The lowest number that no stream has.
CUstream free_stream() {
    uintptr_t number = 1;
    while (now->streams.contains(stream(number)))
        number++;
    return stream(number);
}

// Null takes the top off.
CUresult CUDAAPI set_current(CUcontext context) {
    const Call call;
    if (context && !now->find(context, "a context that has ended is made current"))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.count)
        stack.count--;
    if (context)
        stack.all[stack.count++] = context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI count_gpus(int* count) {
    *count = MadeUpPrimaries::kGpus;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI get_gpu(CUdevice* into, int ordinal) {
    if (!primaries->knows(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *into = ordinal;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI total_memory(size_t* bytes, CUdevice gpu) {
    const Call call;
    if (!primaries->knows(gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = static_cast<size_t>(gpu) + 1;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI current_gpu(CUdevice* into) {
    const Call call;
    if (!stack.top())
        return CUDA_ERROR_INVALID_CONTEXT;
    *into = gpu_of(stack.top());
    return CUDA_SUCCESS;
}

CUresult CUDAAPI gpu_of_context(CUdevice* into, CUcontext context) {
    const Call call;
    if (!now->find(context, "the GPU of a context that has ended"))
        return CUDA_ERROR_INVALID_CONTEXT;
    *into = gpu_of(context);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI retain(CUcontext* into, CUdevice gpu) {
    const Call call;
    if (!primaries->knows(gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    if (primaries->uses[static_cast<size_t>(gpu)]++ == 0)
        now->contexts[real_of(gpu)] = {};
    *into = real_of(gpu);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI release(CUdevice gpu) {
    const Call call;
    if (!primaries->knows(gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    unsigned& uses = primaries->uses[static_cast<size_t>(gpu)];
    if (uses == 0)
        return now->fails("a use is given up that nobody has", CUDA_ERROR_INVALID_CONTEXT);
    if (--uses != 0)
        return CUDA_SUCCESS;
    now->end(real_of(gpu));
    primaries->end_pools(gpu);
    return CUDA_SUCCESS;
}

// The context stays with its uses, and with nothing in it.
CUresult CUDAAPI reset(CUdevice gpu) {
    const Call call;
    if (!primaries->knows(gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    if (primaries->uses[static_cast<size_t>(gpu)] == 0)
        return CUDA_SUCCESS;
    now->end(real_of(gpu));
    now->contexts[real_of(gpu)] = {};
    primaries->end_pools(gpu);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI get_state(CUdevice gpu, unsigned* flags, int* active) {
    const Call call;
    if (!primaries->knows(gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    *active = primaries->uses[static_cast<size_t>(gpu)] != 0;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI make_stream(CUstream* into, unsigned) {
    const Call call;
    if (!now->find(stack.top(), "a stream is made in a context that has ended"))
        return CUDA_ERROR_INVALID_CONTEXT;
    *into = free_stream();
    now->streams[*into] = {stack.top(), false};
    return CUDA_SUCCESS;
}

CUresult CUDAAPI destroy_stream(CUstream stream) {
    const Call call;
    if (now->streams.erase(stream) == 0)
        return now->fails("a stream is destroyed twice", CUDA_ERROR_INVALID_HANDLE);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI make_pool(CUmemoryPool* into, const CUmemPoolProps* wish) {
    const Call call;
    *into = reinterpret_cast<CUmemoryPool>(++primaries->pools_made << 4);
    primaries->pools[*into] = wish->location.id;
    return CUDA_SUCCESS;
}

// It has no bytes: pools' memory is not looked at here.
CUresult CUDAAPI allocate_from_pool(CUdeviceptr* into, size_t, CUmemoryPool pool, CUstream) {
    const Call call;
    const auto known = primaries->pools.find(pool);
    if (known == primaries->pools.end())
        return now->fails("memory of a pool that has ended", CUDA_ERROR_INVALID_VALUE);
    if (known->second != gpu_of(stack.top()))
        now->fails("memory of another GPU's pool", CUDA_SUCCESS);
    *into = 0;
    return CUDA_SUCCESS;
}

// A context of the program's own, or a GPU's own pool: the split's functions stand before these.
template <typename... Arguments>
CUresult CUDAAPI unasked(Arguments...) {
    return now->fails("the driver is asked for what partitions have instead", CUDA_ERROR_UNKNOWN);
}

void put_all() {
    using enum Function;
    put(cuCtxSetCurrent, set_current);
    put(cuCtxGetDevice, current_gpu);
    put(cuCtxGetDevice_v2, gpu_of_context);
    put(cuCtxCreate_v2, unasked<CUcontext*, unsigned, CUdevice>);
    put(cuCtxDestroy_v2, unasked<CUcontext>);
    put(cuCtxAttach, unasked<CUcontext*, unsigned>);
    put(cuCtxDetach, unasked<CUcontext>);
    put(cuDeviceGetCount, count_gpus);
    put(cuDeviceGet, get_gpu);
    put(cuDeviceTotalMem_v2, total_memory);
    put(cuDevicePrimaryCtxRetain, retain);
    put(cuDevicePrimaryCtxRelease_v2, release);
    put(cuDevicePrimaryCtxReset_v2, reset);
    put(cuDevicePrimaryCtxGetState, get_state);
    put(cuStreamCreate, make_stream);
    put(cuStreamDestroy_v2, destroy_stream);
    put(cuDeviceGetDefaultMemPool, unasked<CUmemoryPool*, CUdevice>);
    put(cuMemPoolCreate, make_pool);
    put(cuMemAllocAsync, unasked<CUdeviceptr*, size_t, CUstream>);
    put(cuMemAllocFromPoolAsync, allocate_from_pool);
}

}  // namespace

MadeUpPrimaries::MadeUpPrimaries() : state_(std::make_unique<State>()) {
    primaries = state_.get();
    put_all();
}

MadeUpPrimaries::~MadeUpPrimaries() {
    std::ranges::fill(cuslice_driver_slots, nullptr);
    primaries = nullptr;
}

unsigned MadeUpPrimaries::uses(CUdevice physical) const { return state_->uses[static_cast<size_t>(physical)]; }
size_t MadeUpPrimaries::streams() const { return now->streams.size(); }

}  // namespace cuslice::tests
