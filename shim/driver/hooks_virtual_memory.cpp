// The virtual memory API, which PyTorch's expandable segments and NCCL allocate by.
#include "shim/driver/counted_physical.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

VirtualGpu* gpu_of(const CUmemAllocationProp* properties) {
    if (!properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return nullptr;
    return process().gpu_of(properties->location.id);
}

// Tiles of sparse arrays hold memory as mappings do. Which of them do is the driver's to know: a piece that was bound
// once is asked of its figure when its handles and mappings are gone. Noted before the call: another thread may release
// it.
template <typename Call>
CUresult counted_binding(const CUarrayMapInfo* list, unsigned count, Call call) {
    const HookEntry entry;
    if (!entry.counts() || !list) return call();
    for (unsigned i = 0; i < count; i++)
        if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP) pieces().kept_elsewhere(list[i].memHandle.memHandle);
    return imported_given_back(call());
}

}  // namespace

CUSLICE_HOOK cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned count, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_binding(list, count, [&] { return CUSLICE_REAL(cuMemMapArrayAsync)(list, count, stream); });
}

CUSLICE_HOOK cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned count, CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_binding(list, count, [&] { return CUSLICE_REAL(cuMemMapArrayAsync_ptsz)(list, count, stream); });
}

CUSLICE_HOOK cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                         unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const auto call = [&] { return CUSLICE_REAL(cuMemCreate)(handle, size, properties, flags); };
    VirtualGpu* gpu = entry.counts() ? gpu_of(properties) : nullptr;
    if (!gpu || !gpu->limited()) return call();
    OverLimit why;
    if (!gpu->reserve(size, &why)) return refuse(Function::cuMemCreate, *gpu, why);
    HookReservation reservation(*gpu, size);
    return charged_allocation(
        reservation, [&] { return ask_driver(*gpu, size, call); },
        [&] { return pieces().created(*handle, size, gpu->ordinal()) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY; },
        [&] {
            CUSLICE_REAL(cuMemRelease)
            (*handle);
        });
}

CUSLICE_HOOK cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == CUDA_SUCCESS && entry.counts()) pieces().retained(*handle);
    return result;
}

CUSLICE_HOOK cuMemRelease(CUmemGenericAllocationHandle handle) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    if (!entry.counts()) return CUSLICE_REAL(cuMemRelease)(handle);
    const PhysicalMemory::Change change = pieces().release(handle);
    if (!change.noted) return imported_given_back(CUSLICE_REAL(cuMemRelease)(handle));
    const CUresult result = CUSLICE_REAL(cuMemRelease)(handle);
    if (result == CUDA_SUCCESS)
        pieces().release_done(change, give_back);
    else
        pieces().release_failed(change);
    return result;
}

CUSLICE_HOOK cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                      unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemMap)(address, size, offset, handle, flags);
    if (result != CUDA_SUCCESS || !entry.counts() || pieces().mapped(address, size, handle)) return result;
    CUSLICE_REAL(cuMemUnmap)(address, size);  // no memory to write it down in
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUSLICE_HOOK cuMemUnmap(CUdeviceptr address, size_t size) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    if (!entry.counts()) return CUSLICE_REAL(cuMemUnmap)(address, size);
    PhysicalMemory::Unmapping gone;
    pieces().unmap(address, size, &gone);
    if (!gone.mappings.size()) return imported_given_back(CUSLICE_REAL(cuMemUnmap)(address, size));
    const CUresult result = CUSLICE_REAL(cuMemUnmap)(address, size);
    if (result == CUDA_SUCCESS)
        pieces().unmap_done(&gone, give_back);
    else
        pieces().unmap_failed(&gone);
    return result;
}

}  // namespace cuslice
