// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation. What counts is what the pools keep from the driver (virtual_gpu/gpu/memory_pools.h).
#include "shim/driver/cached.h"
#include "shim/driver/counted_pool.h"
#include "shim/driver/export.h"
#include "shim/driver/recorded.h"
#include "virtual_gpu/gpu/late_release.h"

namespace cuslice {

namespace {

// The driver's functions that take a stream, in their forms for each default stream.
struct Legacy {
    static constexpr bool per_thread = false;
    static constexpr auto device = CUSLICE_REAL(cuStreamGetDevice);
    static constexpr auto capturing = CUSLICE_REAL(cuStreamIsCapturing);
    static constexpr auto free = CUSLICE_REAL(cuMemFreeAsync);
    static constexpr auto synchronize = CUSLICE_REAL(cuStreamSynchronize);
};
struct PerThread {
    static constexpr bool per_thread = true;
    static constexpr auto device = CUSLICE_REAL(cuStreamGetDevice_ptsz);
    static constexpr auto capturing = CUSLICE_REAL(cuStreamIsCapturing_ptsz);
    static constexpr auto free = CUSLICE_REAL(cuMemFreeAsync_ptsz);
    static constexpr auto synchronize = CUSLICE_REAL(cuStreamSynchronize_ptsz);
};

// The pool's GPU, for an allocation on `stream`: its own context's device, else the thread's. The driver is asked for
// the context rather than the device: another thread may begin to capture the stream at any moment, and the second
// question would end that. Only of a context that isn't known is the device asked for; drivers before 12.8 can't tell
// that.
template <typename Form>
VirtualGpu* gpu_of_stream(CUstream stream) {
    if (is_default(stream) || process().gpu_count() <= 1)
        return process().current().gpu;
    CUdevice device = gpu_state().contexts.device_of_stream(stream);
    if (device < 0 && Form::device(stream, &device) != CUDA_SUCCESS)
        return process().current().gpu;
    return process().gpu_of(device);
}

// A captured allocation takes nothing yet: it is a node of a graph, which is counted when it is launched. Asked first,
// since the driver lets nobody ask for the GPU of a stream that is captured, and ends the capture.
template <typename Form>
bool captures(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult known = Form::capturing(stream, &status);
    return known == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// The GPU of a pool that the program named: noted when it was made, or some GPU's default pool.
VirtualGpu* gpu_of_pool(CUmemoryPool pool) {
    for (VirtualGpu& gpu : process().gpus()) {
        CUmemoryPool preset = nullptr;
        if (gpu.pools().knows(pool) ||
            (CUSLICE_REAL(cuDeviceGetDefaultMemPool)(&preset, gpu.device()) == CUDA_SUCCESS && preset == pool))
            return &gpu;
    }
    return nullptr;  // on the host, or another process's: not ours to pay for
}

// Pools may be on the host, too.
bool on_device(CUdeviceptr address) {
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    CUSLICE_REAL(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    return type != CU_MEMORYTYPE_HOST;
}

// The GPU of memory that we don't charge: from a pool that isn't ours to pay for, or on a GPU without a limit.
VirtualGpu* gpu_of_address(CUdeviceptr address) {
    int ordinal = -1;
    CUSLICE_REAL(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    return process().gpu_of(ordinal);
}

// No context's end frees it. What is captured is a part of a graph, which gets memory when it is launched. `call` is
// given where to say which GPU it was for.
template <typename Form, typename Call>
[[gnu::always_inline]] inline CUresult recorded_async(const CUdeviceptr* pointer, uint64_t bytes, CUstream stream,
                                                      Call call) {
    const RecordedCall recorded;
    VirtualGpu* gpu = nullptr;
    const CUresult result = call(gpu);
    if (!recorded.records() || !pointer || (result == CUDA_SUCCESS && !on_device(*pointer)) || captures<Form>(stream))
        return result;
    if (!gpu && result == CUDA_SUCCESS)
        gpu = gpu_of_address(*pointer);
    note_allocation(result, result == CUDA_SUCCESS ? *pointer : 0, bytes, number_of(stream, Form::per_thread), 0, gpu);
    return result;
}

template <typename Form>
bool free_again(CUdeviceptr address, CUstream stream) {
    Form::free(address, stream);
    Form::synchronize(stream);
    return true;
}

// `call` is given where the driver puts the address.
template <typename Form, typename Call>
CUresult allocate_in(Function function, VirtualGpu* gpu, CUmemoryPool pool, CUdeviceptr* dptr, uint64_t bytes,
                     CUstream stream, Call call) {
    OutParameter<CUdeviceptr> made(dptr);
    const CUresult result = counted_from_pool(
        function, gpu, pool, bytes, [&] { return call(made.place()); },
        [&] { return free_again<Form>(*made, stream); });
    if (result == CUDA_SUCCESS)
        made.keep();
    return result;
}

// No bytes are success and a null pointer (H200, driver 580.159.04, 2026-11-27), and so no matter of limits.
template <typename Form>
constexpr auto allocate = [](auto real, CUdeviceptr* dptr, size_t bytesize, CUstream stream) {
    return recorded_async<Form>(dptr, bytesize, stream, [&](VirtualGpu*& gpu) {
        const HookEntry entry;
        if (!entry.counts() || bytesize == 0 || captures<Form>(stream))
            return real(dptr, bytesize, stream);
        gpu = gpu_of_stream<Form>(stream);
        CUmemoryPool pool = nullptr;
        if (!gpu || !gpu->limited() || CUSLICE_REAL(cuDeviceGetMemPool)(&pool, gpu->device()) != CUDA_SUCCESS)
            return real(dptr, bytesize, stream);
        return allocate_in<Form>(real.function, gpu, pool, dptr, bytesize, stream,
                                 [&](CUdeviceptr* made) { return real(made, bytesize, stream); });
    });
};

bool is_managed_memory(CUdeviceptr address) {
    unsigned char managed = 0;
    const RelaxedCaptures relaxed;
    return CUSLICE_REAL(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
           managed != 0;
}

// Managed memory is charged in full where it is allocated, as that of cuMemAllocManaged. It ends with no context of
// ours: what a reset frees stays charged, rather too much than too little.
template <typename Form, typename Call>
CUresult counted_managed(Function function, VirtualGpu& gpu, uint64_t bytes, CUdeviceptr* made, CUstream stream,
                         Call call) {
    LimitError why;
    if (!gpu.reserve(bytes, &why))
        return refuse(function, gpu, why, bytes);
    HookReservation reservation(gpu, bytes);
    Process::Current nobody;
    nobody.gpu = &gpu;
    return charged_allocation(
        reservation, [&] { return ask_driver(gpu, bytes, [&] { return call(made); }); },
        [&] {
            const CUresult recorded = record(*made, bytes, nobody, Kind::managed);
            if (recorded == CUDA_SUCCESS)
                gpu.physical().managed_changed(static_cast<int64_t>(Budget::charged(bytes)));
            return recorded;
        },
        [&] { free_again<Form>(*made, stream); });
}

// From a pool that isn't a GPU's own: of managed memory, for which the stream's GPU pays, or of the host's. Of an
// unknown pool only its memory tells: what turns out to be managed is given back, and asked for once more with a
// reservation, without which the GPU's figures would show it twice.
template <typename Form, typename Call>
CUresult allocate_elsewhere(Function function, VirtualGpu& gpu, CUmemoryPool pool, CUdeviceptr* dptr, uint64_t bytes,
                            CUstream stream, Call call) {
    OutParameter<CUdeviceptr> made(dptr);
    ManagedPools& managed = gpu_state().managed_pools;
    bool is_managed = managed.has(pool);
    CUresult result = CUDA_SUCCESS;
    if (!is_managed) {
        result = call(made.place());
        is_managed = result == CUDA_SUCCESS && is_managed_memory(*made);
        if (is_managed) {
            managed.add(pool);
            free_again<Form>(*made, stream);
        }
    }
    if (is_managed)
        result = counted_managed<Form>(function, gpu, bytes, made.place(), stream, call);
    if (result == CUDA_SUCCESS)
        made.keep();
    return result;
}

template <typename Form>
constexpr auto allocate_from = [](auto real, CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream stream) {
    return recorded_async<Form>(dptr, bytesize, stream, [&](VirtualGpu*& gpu) {
        const HookEntry entry;
        const auto call = [&](CUdeviceptr* made) { return real(made, bytesize, pool, stream); };
        if (!entry.counts() || bytesize == 0 || captures<Form>(stream))
            return call(dptr);
        gpu = gpu_of_pool(pool);
        if (gpu)
            return allocate_in<Form>(real.function, gpu, pool, dptr, bytesize, stream, call);
        VirtualGpu* const payer = gpu_of_stream<Form>(stream);
        if (!payer || !payer->limited())
            return call(dptr);
        return allocate_elsewhere<Form>(real.function, *payer, pool, dptr, bytesize, stream, call);
    });
};

// Frees both pool memory, for which there is no record, and memory of cuMemAlloc, for which there is; the latter when
// the stream gets there.
void free_later(VirtualGpu& gpu, const Allocation& freed) {
    is_exported(freed) ? release_shared(gpu, freed.bytes) : release_later(gpu, freed.bytes);
}

// A block of a cache, to be free when the stream gets there: what a free waits for, or parks the block for, includes
// that. False if it is the driver's to answer.
template <typename Form>
bool cached_free_later(CUdeviceptr address, CUstream stream, CUresult* result) {
    if (!meets_caches() || !address_map().segment(address))
        return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    *result = Form::capturing(stream, &status);  // which also says whether it is a stream at all
    if (*result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)
        *result = CUDA_ERROR_INVALID_VALUE;  // captured, only memory of the graph can be freed
    return *result != CUDA_SUCCESS || cached_free(address, result);
}

template <typename Form>
constexpr auto free_async = [](auto real, CUdeviceptr dptr, CUstream stream) {
    return recorded_free(dptr, number_of(stream, Form::per_thread), [&] {
        CUresult result;
        if (cached_free_later<Form>(dptr, stream, &result))
            return result;
        return counted_free(dptr, free_later, [&] { return real(dptr, stream); });
    });
};

}  // namespace

CUSLICE_HOOK_FORM(cuMemAllocAsync, allocate<Legacy>, dptr, bytesize, stream)
CUSLICE_HOOK_FORM(cuMemAllocAsync_ptsz, allocate<PerThread>, dptr, bytesize, stream)
CUSLICE_HOOK_FORM(cuMemAllocFromPoolAsync, allocate_from<Legacy>, dptr, bytesize, pool, stream)
CUSLICE_HOOK_FORM(cuMemAllocFromPoolAsync_ptsz, allocate_from<PerThread>, dptr, bytesize, pool, stream)
CUSLICE_HOOK_FORM(cuMemFreeAsync, free_async<Legacy>, dptr, stream)
CUSLICE_HOOK_FORM(cuMemFreeAsync_ptsz, free_async<PerThread>, dptr, stream)

CUSLICE_HOOK(cuMemPoolCreate, pool, properties) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemPoolCreate)(pool, properties);
    if (result != CUDA_SUCCESS || !entry.counts())
        return result;
    if (properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        gpu_state().managed_pools.add(*pool);
        return result;
    }
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return result;
    if (VirtualGpu* const gpu = named_gpu(entry, properties->location.id))
        gpu->pools().created(*pool);
    return result;
}

CUSLICE_HOOK(cuMemPoolDestroy, pool) {
    const HookEntry entry;
    gpu_state().managed_pools.remove(pool);
    VirtualGpu* gpu = entry.counts() ? gpu_of_pool(pool) : nullptr;
    if (!gpu || !gpu->limited())
        return CUSLICE_REAL(cuMemPoolDestroy)(pool);
    MemoryPools& pools = gpu->pools();
    const bool orphans = pools.has_allocations(pool);
    const CUresult result = CUSLICE_REAL(cuMemPoolDestroy)(pool);
    if (result != CUDA_SUCCESS)
        return result;
    const uint64_t charged = pools.destroyed(pool);
    if (!orphans) {
        gpu->budget().release(charged);
        return result;
    }
    // The driver keeps it until the last allocation is freed, and nothing says how much that still is.
    gpu->unrecorded_frees().watch();
    release_shared(*gpu, charged);
    return result;
}

CUSLICE_HOOK(cuMemPoolImportPointer, address, pool, data) {
    const HookEntry entry;
    VirtualGpu* const gpu = importing_gpu(entry);
    if (gpu)
        gpu->unrecorded_frees().watch();
    return counted_making(CUSLICE_REAL(cuMemPoolImportPointer), CUSLICE_REAL(cuMemFree_v2), gpu, address, pool, data);
}

}  // namespace cuslice
