// SPDX-License-Identifier: Apache-2.0
// The virtual memory API, which PyTorch's expandable segments and NCCL allocate by.
#include "shim/driver/counted_physical.h"
#include "shim/driver/export.h"
#include "shim/driver/holdings.h"

namespace cuslice {

namespace {

VirtualGpu* gpu_of(const HookEntry& entry, const CUmemAllocationProp* properties) {
    if (!properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return nullptr;
    return named_gpu(entry, properties->location.id);
}

// Tiles of sparse arrays hold memory as mappings do. Which of them do is the driver's to know: an allocation that was
// bound once is asked of its figure when its handles and mappings are gone. Noted before the call: another thread may
// release it.
constexpr auto counted_binding = [](auto real, CUarrayMapInfo* list, unsigned count, CUstream stream) {
    const HookEntry entry;
    if (!entry.counts() || !list)
        return real(list, count, stream);
    for (unsigned i = 0; i < count; i++)
        if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            physical_memory().kept_elsewhere(list[i].memHandle.memHandle, PhysicalMemory::Kept::by_array);
    return imported_given_back(real(list, count, stream));
};

}  // namespace

CUSLICE_HOOK_FORM(cuMemMapArrayAsync, counted_binding, list, count, stream)
CUSLICE_HOOK_FORM(cuMemMapArrayAsync_ptsz, counted_binding, list, count, stream)

CUSLICE_HOOK(cuMemCreate, handle, size, properties, flags) {
    const HookEntry entry;
    const auto call = [&](auto* into) { return CUSLICE_REAL(cuMemCreate)(into, size, properties, flags); };
    VirtualGpu* const gpu = gpu_of(entry, properties);
    if (!gpu)
        return call(handle);
    LimitError why;
    if (!gpu->reserve(size, &why))
        return refuse(Function::cuMemCreate, *gpu, why);
    HookReservation reservation(*gpu, size);
    OutParameter<CUmemGenericAllocationHandle> made(handle);
    const CUresult result = charged_allocation(
        reservation, [&] { return ask_driver(*gpu, size, [&] { return call(made.place()); }); },
        [&] {
            return physical_memory().created(*made, size, gpu->ordinal()) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        },
        [&] {
            CUSLICE_REAL(cuMemRelease)
            (*made);
        });
    if (result == CUDA_SUCCESS)
        made.keep();
    return result;
}

CUSLICE_HOOK(cuMemRetainAllocationHandle, handle, address) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == CUDA_SUCCESS && entry.counts())
        physical_memory().retained(*handle);
    return result;
}

CUSLICE_HOOK(cuMemRelease, handle) {
    const HookEntry entry;
    if (!entry.counts())
        return CUSLICE_REAL(cuMemRelease)(handle);
    note_holdings();
    const PhysicalMemory::Change change = physical_memory().release(handle);
    if (!change.noted)
        return imported_given_back(CUSLICE_REAL(cuMemRelease)(handle));
    EndingMemory ending(change.exported);
    const CUresult result = CUSLICE_REAL(cuMemRelease)(handle);
    if (result == CUDA_SUCCESS)
        physical_memory().release_done(change, ending.on_freed());
    else
        physical_memory().release_failed(change);
    return result;
}

CUSLICE_HOOK(cuMemMap, address, size, offset, handle, flags) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemMap)(address, size, offset, handle, flags);
    if (result != CUDA_SUCCESS || !entry.counts() || physical_memory().mapped(address, size, handle))
        return result;
    CUSLICE_REAL(cuMemUnmap)(address, size);  // no memory to write it down in
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUSLICE_HOOK(cuMemUnmap, address, size) {
    const HookEntry entry;
    if (!entry.counts())
        return CUSLICE_REAL(cuMemUnmap)(address, size);
    note_holdings();
    PhysicalMemory::Unmapping gone;
    physical_memory().unmap(address, size, &gone);
    if (!gone.mappings.size())
        return imported_given_back(CUSLICE_REAL(cuMemUnmap)(address, size));
    EndingMemory ending(gone.exported);
    const CUresult result = CUSLICE_REAL(cuMemUnmap)(address, size);
    if (result == CUDA_SUCCESS)
        physical_memory().unmap_done(&gone, ending.on_freed());
    else
        physical_memory().unmap_failed(&gone);
    return result;
}

CUSLICE_HOOK(cuMemExportToShareableHandle, shareable, handle, type, flags) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMemExportToShareableHandle)(shareable, handle, type, flags);
    if (result == CUDA_SUCCESS && entry.counts())
        physical_memory().kept_elsewhere(handle, PhysicalMemory::Kept::exported);
    return result;
}

// In the process that made the memory, this is one more handle to it; drivers may give the same number again.
CUSLICE_HOOK(cuMemImportFromShareableHandle, handle, shareable, type) {
    const HookEntry entry;
    const CUresult result = counted_making(CUSLICE_REAL(cuMemImportFromShareableHandle), CUSLICE_REAL(cuMemRelease),
                                           importing_gpu(entry), handle, shareable, type);
    if (result == CUDA_SUCCESS && entry.counts())
        gpu_state().physical_memory.retained(*handle);
    return result;
}

}  // namespace cuslice
