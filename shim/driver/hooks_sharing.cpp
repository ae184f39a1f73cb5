// Memory of one process in another. Who made it pays for it as long as it lives there; whatever the driver counts for
// those who opened it, then or after the owner's end, is part of what the driver takes here by itself.
#include "shim/driver/counted.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

VirtualGpu* current_gpu(const HookEntry& entry) { return entry.counts() ? process().current().gpu : nullptr; }

}  // namespace

CUSLICE_HOOK cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuIpcGetMemHandle)(handle, address);
    if (result != CUDA_SUCCESS || !entry.counts()) return result;
    // Documented for an allocation's base only, but drivers may take any address in it.
    CUdeviceptr base = 0;
    std::size_t size = 0;
    if (CUSLICE_REAL(cuMemGetAddressRange_v2)(&base, &size, address) != CUDA_SUCCESS) base = address;
    process().allocations().change_kind(base, static_cast<std::uint8_t>(Kind::exported));
    return result;
}

CUSLICE_HOOK cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    return counted_step(
        Function::cuIpcOpenMemHandle_v2, current_gpu(entry),
        [&] { return CUSLICE_REAL(cuIpcOpenMemHandle_v2)(address, handle, flags); },
        [&] { return CUSLICE_REAL(cuIpcCloseMemHandle)(*address); });
}

CUSLICE_HOOK cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    return counted_step(
        Function::cuIpcOpenMemHandle, current_gpu(entry),
        [&] { return CUSLICE_REAL(cuIpcOpenMemHandle)(address, handle, flags); },
        [&] { return CUSLICE_REAL(cuIpcCloseMemHandle)(*address); });
}

CUSLICE_HOOK cuIpcCloseMemHandle(CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuIpcCloseMemHandle)(address);
    VirtualGpu* gpu = result == CUDA_SUCCESS ? current_gpu(entry) : nullptr;
    if (gpu) gpu->driver_gave_back();
    return result;
}

CUSLICE_HOOK cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type, unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemExportToShareableHandle)(shareable, handle, type, flags);
    if (result == CUDA_SUCCESS && entry.counts()) process().physical_memory().kept_elsewhere(handle);
    return result;
}

// In the process that made the memory, this is one more handle to it; drivers may give the same number again.
CUSLICE_HOOK cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                            CUmemAllocationHandleType type) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = counted_step(
        Function::cuMemImportFromShareableHandle, current_gpu(entry),
        [&] { return CUSLICE_REAL(cuMemImportFromShareableHandle)(handle, shareable, type); },
        [&] { return CUSLICE_REAL(cuMemRelease)(*handle); });
    if (result == CUDA_SUCCESS && entry.counts()) process().physical_memory().retained(*handle);
    return result;
}

CUSLICE_HOOK cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    return counted_step(
        Function::cuMemPoolImportPointer, current_gpu(entry),
        [&] { return CUSLICE_REAL(cuMemPoolImportPointer)(address, pool, data); },
        [&] { return CUSLICE_REAL(cuMemFree_v2)(*address); });
}

}  // namespace cuslice
