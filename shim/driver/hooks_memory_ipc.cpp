// SPDX-License-Identifier: Apache-2.0
// Memory of one process in another, by handles of allocations. Who made it pays for it as long as it lives there;
// whatever the driver counts for those who opened it, then or after the owner's end, is part of what the driver takes
// here by itself.
#include "shim/driver/cached.h"
#include "shim/driver/counted.h"
#include "shim/driver/export.h"
#include "shim/driver/kept.h"
#include "shim/log.h"

namespace cuslice {

namespace {

CUresult refuse_open() {
    LogLine line;
    line.append(
        "cuIpcOpenMemHandle: the handle is of a block in a cached segment, and the process that exported it has ended");
    line.append(" or is not visible from here; run that process with --allocator direct");
    log_line(LogLevel::warn, line);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult refuse_export() {
    LogLine line;
    line.append("cuIpcGetMemHandle: the block lies in a cached segment, and the kernel gives no file in memory");
    line.append(" (memfd_create) for its handle; run this process with --allocator direct");
    log_line(LogLevel::warn, line);
    return CUDA_ERROR_OPERATING_SYSTEM;
}

IpcBlocks& ipc_blocks() { return process().caches().ipc_blocks(); }

void note_exported(CUdeviceptr base) {
    gpu_state().allocations.change_kind(base, static_cast<uint8_t>(Kind::exported));
}

// A handle of the driver's, or of a block in a segment. In a child that was forked from a process with caches, and in
// one without any, handles come from processes that have some.
constexpr auto open_handle = [](auto open, CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags) {
    const HookEntry entry;
    const IpcBlocks::Given given = IpcBlocks::read(handle);
    if (given.ours && !given.readable)
        return refuse_open();
    CUdeviceptr opened = 0;
    const CUresult result = counted_making(open, CUSLICE_REAL(cuIpcCloseMemHandle), current_gpu(entry),
                                           address ? &opened : nullptr, given.handle, flags);
    if (result != CUDA_SUCCESS || !address)
        return result;
    if (given.offset && !ipc_blocks().opened(opened + given.offset, given.offset, given.bytes)) {
        CUSLICE_REAL(cuIpcCloseMemHandle)(opened);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = opened + given.offset;
    return result;
};

}  // namespace

CUSLICE_HOOK(cuIpcGetMemHandle, handle, address) {
    const ContextAllocator::Found block = cached_block(address);
    const HookEntry entry;
    if (block.address && !process().caches().exported(block))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr base = block.address ? block.segment->address : address;
    CUipcMemHandle made;
    const CUresult result = CUSLICE_REAL(cuIpcGetMemHandle)(handle ? &made : nullptr, base);
    if (result != CUDA_SUCCESS || !handle)
        return result;
    if (!entry.counts()) {
        *handle = made;
        return result;
    }
    // Documented for an allocation's base only, but drivers may take any address in it.
    size_t size = 0;
    if (!block.address && CUSLICE_REAL(cuMemGetAddressRange_v2)(&base, &size, address) != CUDA_SUCCESS)
        base = address;
    const uint64_t offset = block.address - (block.address ? base : 0);
    if (offset && !ipc_blocks().give(&made, offset, block.requested))
        return refuse_export();
    note_exported(base);
    *handle = made;
    return result;
}

CUSLICE_HOOK_FORM(cuIpcOpenMemHandle, open_handle, address, handle, flags)
CUSLICE_HOOK_FORM(cuIpcOpenMemHandle_v2, open_handle, address, handle, flags)

CUSLICE_HOOK(cuIpcCloseMemHandle, address) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuIpcCloseMemHandle)(ipc_blocks().closed(address));
    VirtualGpu* gpu = result == CUDA_SUCCESS ? current_gpu(entry) : nullptr;
    if (gpu)
        gpu->driver_gave_back();
    return result;
}

// A dma-buf, by which other devices use the memory. It keeps the memory whatever becomes of the allocation. Where it is
// refused, the program is likely to have it pinned in another way.
CUSLICE_HOOK(cuMemGetHandleForAddressRange, handle, address, size, type, flags) {
    if (!keep_from_reuse(address, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemGetHandleForAddressRange)(handle, address, size, type, flags);
    if (result != CUDA_SUCCESS || !entry.counts())
        return result;
    CUdeviceptr base = address;
    size_t whole = 0;
    CUSLICE_REAL(cuMemGetAddressRange_v2)(&base, &whole, address);
    note_exported(base);
    return result;
}

}  // namespace cuslice
