// Memory of one process in another. Who made it pays for it as long as it lives there; whatever the driver counts for
// those who opened it, then or after the owner's end, is part of what the driver takes here by itself.
#include "shim/driver/cached.h"
#include "shim/driver/counted.h"
#include "shim/driver/export.h"
#include "shim/driver/kept.h"
#include "shim/log.h"

namespace cuslice {

namespace {

VirtualGpu* current_gpu(const HookEntry& entry) { return entry.counts() ? process().current().gpu : nullptr; }

CUresult refuse_open() {
    LogLine line;
    line.append(
        "cuIpcOpenMemHandle: the handle is of a block in a cached segment, and the process that gave it has ended");
    line.append(" or can't be seen from here; with --allocator direct there it would not be needed");
    say(LogLevel::warn, line);
    return CUDA_ERROR_INVALID_VALUE;
}

// A handle of the driver's, or of a block in a segment. In a child that was forked from a process with caches, and in
// one without any, handles come from processes that have some.
template <typename Open>
CUresult open_handle(Function function, CUdeviceptr* address, const CUipcMemHandle& handle, Open open) {
    const HookEntry entry;
    const IpcBlocks::Given given = IpcBlocks::read(handle);
    if (given.ours && !given.readable) return refuse_open();
    CUdeviceptr opened = 0;
    const CUresult result = counted_making(
        function, current_gpu(entry), address ? &opened : nullptr,
        [&](CUdeviceptr* into) { return open(into, given.handle); },
        [](CUdeviceptr made) { return CUSLICE_REAL(cuIpcCloseMemHandle)(made); });
    if (result != CUDA_SUCCESS) return result;
    if (given.offset && !process().caches().ipc_blocks().opened(opened + given.offset, given.offset, given.bytes)) {
        CUSLICE_REAL(cuIpcCloseMemHandle)(opened);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = opened + given.offset;
    return result;
}

}  // namespace

CUSLICE_HOOK cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    const CachingAllocator::Found block = cached_block(address);
    const HookEntry entry;
    if (block.address && !process().caches().exported(block)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr base = block.address ? block.segment->address : address;
    const CUresult result = CUSLICE_REAL(cuIpcGetMemHandle)(handle, base);
    if (result != CUDA_SUCCESS || !entry.counts()) return result;
    // Documented for an allocation's base only, but drivers may take any address in it.
    std::size_t size = 0;
    if (!block.address && CUSLICE_REAL(cuMemGetAddressRange_v2)(&base, &size, address) != CUDA_SUCCESS) base = address;
    gpu_state().allocations.change_kind(base, static_cast<std::uint8_t>(Kind::exported));
    const std::uint64_t offset = block.address - (block.address ? base : 0);
    if (offset && !process().caches().ipc_blocks().give(handle, offset, block.requested))
        return CUDA_ERROR_OPERATING_SYSTEM;
    return result;
}

CUSLICE_HOOK cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
    if (ready() != Readiness::ready) return unavailable();
    return open_handle(Function::cuIpcOpenMemHandle_v2, address, handle,
                       [&](CUdeviceptr* into, const CUipcMemHandle& drivers) {
                           return CUSLICE_REAL(cuIpcOpenMemHandle_v2)(into, drivers, flags);
                       });
}

CUSLICE_HOOK cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
    if (ready() != Readiness::ready) return unavailable();
    return open_handle(Function::cuIpcOpenMemHandle, address, handle,
                       [&](CUdeviceptr* into, const CUipcMemHandle& drivers) {
                           return CUSLICE_REAL(cuIpcOpenMemHandle)(into, drivers, flags);
                       });
}

CUSLICE_HOOK cuIpcCloseMemHandle(CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuIpcCloseMemHandle)(process().caches().ipc_blocks().closed(address));
    VirtualGpu* gpu = result == CUDA_SUCCESS ? current_gpu(entry) : nullptr;
    if (gpu) gpu->driver_gave_back();
    return result;
}

// A dma-buf, by which other devices use the memory. It keeps the memory whatever becomes of the allocation. Where it is
// refused, the program is likely to have it pinned in another way.
CUSLICE_HOOK cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t size, CUmemRangeHandleType type,
                                           unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    if (!keep_from_reuse(address, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemGetHandleForAddressRange)(handle, address, size, type, flags);
    if (result != CUDA_SUCCESS || !entry.counts()) return result;
    CUdeviceptr base = address;
    std::size_t whole = 0;
    CUSLICE_REAL(cuMemGetAddressRange_v2)(&base, &whole, address);
    gpu_state().allocations.change_kind(base, static_cast<std::uint8_t>(Kind::exported));
    return result;
}

CUSLICE_HOOK cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type, unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemExportToShareableHandle)(shareable, handle, type, flags);
    if (result == CUDA_SUCCESS && entry.counts()) gpu_state().physical_memory.kept_elsewhere(handle);
    return result;
}

// In the process that made the memory, this is one more handle to it; drivers may give the same number again.
CUSLICE_HOOK cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                            CUmemAllocationHandleType type) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = counted_making(
        Function::cuMemImportFromShareableHandle, current_gpu(entry), handle,
        [&](CUmemGenericAllocationHandle* into) {
            return CUSLICE_REAL(cuMemImportFromShareableHandle)(into, shareable, type);
        },
        [](CUmemGenericAllocationHandle made) { return CUSLICE_REAL(cuMemRelease)(made); });
    if (result == CUDA_SUCCESS && entry.counts()) gpu_state().physical_memory.retained(*handle);
    return result;
}

CUSLICE_HOOK cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    if (VirtualGpu* gpu = current_gpu(entry)) gpu->watch_frees();
    return counted_making(
        Function::cuMemPoolImportPointer, current_gpu(entry), address,
        [&](CUdeviceptr* into) { return CUSLICE_REAL(cuMemPoolImportPointer)(into, pool, data); },
        [](CUdeviceptr made) { return CUSLICE_REAL(cuMemFree_v2)(made); });
}

// Memory of graphics APIs, and of whatever else a descriptor stands for.

CUSLICE_HOOK cuImportExternalMemory(CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* handle) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    return counted_making(
        Function::cuImportExternalMemory, current_gpu(entry), memory,
        [&](CUexternalMemory* into) { return CUSLICE_REAL(cuImportExternalMemory)(into, handle); },
        [](CUexternalMemory made) { return CUSLICE_REAL(cuDestroyExternalMemory)(made); });
}

CUSLICE_HOOK cuExternalMemoryGetMappedBuffer(CUdeviceptr* address, CUexternalMemory memory,
                                             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* buffer) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    if (VirtualGpu* gpu = current_gpu(entry)) gpu->watch_frees();
    return counted_making(
        Function::cuExternalMemoryGetMappedBuffer, current_gpu(entry), address,
        [&](CUdeviceptr* into) { return CUSLICE_REAL(cuExternalMemoryGetMappedBuffer)(into, memory, buffer); },
        [](CUdeviceptr made) { return CUSLICE_REAL(cuMemFree_v2)(made); });
}

CUSLICE_HOOK cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray* array, CUexternalMemory memory,
                                                     const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* descriptor) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    return counted_making(
        Function::cuExternalMemoryGetMappedMipmappedArray, current_gpu(entry), array,
        [&](CUmipmappedArray* into) {
            return CUSLICE_REAL(cuExternalMemoryGetMappedMipmappedArray)(into, memory, descriptor);
        },
        [](CUmipmappedArray made) { return CUSLICE_REAL(cuMipmappedArrayDestroy)(made); });
}

CUSLICE_HOOK cuDestroyExternalMemory(CUexternalMemory memory) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuDestroyExternalMemory)(memory);
    VirtualGpu* gpu = result == CUDA_SUCCESS ? current_gpu(entry) : nullptr;
    if (gpu) gpu->driver_gave_back();
    return result;
}

}  // namespace cuslice
