// Stream-ordered allocation. What counts is what the pools keep from the driver (virtual_gpu/gpu/memory_pools.h).
#include "shim/driver/cached.h"
#include "shim/driver/counted_pool.h"
#include "shim/driver/export.h"
#include "shim/driver/recorded.h"

namespace cuslice {

namespace {

// The pool's GPU, for an allocation on `stream`: its own context's device, else the thread's. Drivers before 12.8 can't
// tell the first; a program with streams of several GPUs then has to make the stream's context current, as NVIDIA's
// samples do.
VirtualGpu* gpu_of_stream(CUstream stream, bool per_thread) {
    CUdevice device = -1;
    const bool is_handle = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
    if (is_handle && process().gpu_count() > 1) {
        const CUresult known = per_thread ? CUSLICE_REAL(cuStreamGetDevice_ptsz)(stream, &device)
                                          : CUSLICE_REAL(cuStreamGetDevice)(stream, &device);
        if (known == CUDA_SUCCESS) return process().gpu_of(device);
    }
    return process().current().gpu;
}

// A captured allocation takes nothing yet.
bool captures(CUstream stream, bool per_thread) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult known = per_thread ? CUSLICE_REAL(cuStreamIsCapturing_ptsz)(stream, &status)
                                      : CUSLICE_REAL(cuStreamIsCapturing)(stream, &status);
    return known == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// The GPU of a pool that the program named: noted when it was made, or some GPU's default pool.
VirtualGpu* gpu_of_pool(CUmemoryPool pool) {
    for (int i = 0, n = process().gpu_count(); i < n; i++) {
        VirtualGpu& gpu = process().gpu(i);
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

// No context's end frees it. What is captured is a part of a graph, which gets memory when it is launched.
template <typename Call>
CUresult recorded_async(const CUdeviceptr* pointer, std::uint64_t bytes, CUstream stream, bool per_thread, Call call) {
    const RecordedCall recorded;
    const CUresult result = call();
    if (!recorded.records() || !pointer || (result == CUDA_SUCCESS && !on_device(*pointer)) ||
        captures(stream, per_thread))
        return result;
    note_allocation(result, result == CUDA_SUCCESS ? *pointer : 0, bytes, number_of(stream, per_thread), 0);
    return result;
}

template <typename Call, typename Undo>
CUresult counted_async(Function function, CUstream stream, bool per_thread, std::uint64_t bytes, Call call, Undo undo) {
    const HookEntry entry;
    if (!entry.counts()) return call();
    VirtualGpu* gpu = gpu_of_stream(stream, per_thread);
    CUmemoryPool pool = nullptr;
    if (!gpu || !gpu->limited() || CUSLICE_REAL(cuDeviceGetMemPool)(&pool, gpu->device()) != CUDA_SUCCESS)
        return call();
    return counted_from_pool(function, gpu, pool, bytes, call, undo, [&] { return captures(stream, per_thread); });
}

bool free_again(CUdeviceptr address, CUstream stream) {
    CUSLICE_REAL(cuMemFreeAsync)(address, stream);
    CUSLICE_REAL(cuStreamSynchronize)(stream);  // refused while the stream is captured: nothing was taken then either
    return true;
}
bool free_again_ptsz(CUdeviceptr address, CUstream stream) {
    CUSLICE_REAL(cuMemFreeAsync_ptsz)(address, stream);
    CUSLICE_REAL(cuStreamSynchronize_ptsz)(stream);
    return true;
}

// Frees both pool memory, for which there is no record, and memory of cuMemAlloc, for which there is; the latter when
// the stream gets there.
void free_later(VirtualGpu& gpu, const Allocation& freed) {
    is_exported(freed) ? gpu.release_shared(freed.bytes) : gpu.release_later(freed.bytes);
}

// A block of a cache, to be free when the stream gets there: what a free waits for, or parks the block for, includes
// that. False if it is the driver's to answer. `capturing` asks it of the stream, and whether that is one at all.
template <typename Capturing>
bool cached_free_later(CUdeviceptr address, CUresult* result, Capturing capturing) {
    if (inside_hook || !process().caches_anything() || !process().caches().map().segment(address)) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    *result = capturing(&status);
    if (*result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)
        *result = CUDA_ERROR_INVALID_VALUE;  // captured, only memory of the graph can be freed
    return *result != CUDA_SUCCESS || cached_free(address, result);
}

}  // namespace

CUSLICE_HOOK cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return recorded_async(dptr, bytesize, stream, false, [&] {
        return counted_async(
            Function::cuMemAllocAsync, stream, false, bytesize,
            [&] { return CUSLICE_REAL(cuMemAllocAsync)(dptr, bytesize, stream); },
            [&] { return free_again(*dptr, stream); });
    });
}

CUSLICE_HOOK cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return recorded_async(dptr, bytesize, stream, true, [&] {
        return counted_async(
            Function::cuMemAllocAsync_ptsz, stream, true, bytesize,
            [&] { return CUSLICE_REAL(cuMemAllocAsync_ptsz)(dptr, bytesize, stream); },
            [&] { return free_again_ptsz(*dptr, stream); });
    });
}

CUSLICE_HOOK cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return recorded_async(dptr, bytesize, stream, false, [&] {
        const HookEntry entry;
        return counted_from_pool(
            Function::cuMemAllocFromPoolAsync, entry.counts() ? gpu_of_pool(pool) : nullptr, pool, bytesize,
            [&] { return CUSLICE_REAL(cuMemAllocFromPoolAsync)(dptr, bytesize, pool, stream); },
            [&] { return free_again(*dptr, stream); }, [&] { return captures(stream, false); });
    });
}

CUSLICE_HOOK cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return recorded_async(dptr, bytesize, stream, true, [&] {
        const HookEntry entry;
        return counted_from_pool(
            Function::cuMemAllocFromPoolAsync_ptsz, entry.counts() ? gpu_of_pool(pool) : nullptr, pool, bytesize,
            [&] { return CUSLICE_REAL(cuMemAllocFromPoolAsync_ptsz)(dptr, bytesize, pool, stream); },
            [&] { return free_again_ptsz(*dptr, stream); }, [&] { return captures(stream, true); });
    });
}

CUSLICE_HOOK cuMemFreeAsync(CUdeviceptr dptr, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return recorded_free(dptr, number_of(stream, false), [&] {
        CUresult result;
        const auto capturing = [&](CUstreamCaptureStatus* status) {
            return CUSLICE_REAL(cuStreamIsCapturing)(stream, status);
        };
        if (cached_free_later(dptr, &result, capturing)) return result;
        return counted_free(dptr, free_later, [&] { return CUSLICE_REAL(cuMemFreeAsync)(dptr, stream); });
    });
}

CUSLICE_HOOK cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return recorded_free(dptr, number_of(stream, true), [&] {
        CUresult result;
        const auto capturing = [&](CUstreamCaptureStatus* status) {
            return CUSLICE_REAL(cuStreamIsCapturing_ptsz)(stream, status);
        };
        if (cached_free_later(dptr, &result, capturing)) return result;
        return counted_free(dptr, free_later, [&] { return CUSLICE_REAL(cuMemFreeAsync_ptsz)(dptr, stream); });
    });
}

CUSLICE_HOOK cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemPoolCreate)(pool, properties);
    if (result != CUDA_SUCCESS || !entry.counts() || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return result;
    VirtualGpu* gpu = process().gpu_of(properties->location.id);
    if (gpu && gpu->limited()) gpu->pools().created(*pool);
    return result;
}

CUSLICE_HOOK cuMemPoolDestroy(CUmemoryPool pool) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    VirtualGpu* gpu = entry.counts() ? gpu_of_pool(pool) : nullptr;
    if (!gpu || !gpu->limited()) return CUSLICE_REAL(cuMemPoolDestroy)(pool);
    MemoryPools& pools = gpu->pools();
    const bool orphans = pools.has_allocations(pool);
    const CUresult result = CUSLICE_REAL(cuMemPoolDestroy)(pool);
    if (result != CUDA_SUCCESS) return result;
    const std::uint64_t charged = pools.destroyed(pool);
    if (!orphans) {
        gpu->budget().release(charged);
        return result;
    }
    // The driver keeps it until the last allocation is freed, and nothing says how much that still is.
    gpu->watch_frees();
    gpu->release_shared(charged);
    return result;
}

}  // namespace cuslice
