// The virtual memory API, which PyTorch's expandable segments and NCCL allocate by.
#include "shim/driver/counted.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

PhysicalMemory& pieces() { return process().physical_memory(); }

void give_back(int gpu, std::uint64_t bytes, bool exported) {
    if (exported) return process().gpu(gpu).release_shared(bytes);
    Budget& budget = process().gpu(gpu).budget();
    budget.begin_release();
    budget.end_release(bytes);
}

// A piece that isn't ours to count may have been one of another process's that has ended, which the driver counts here.
CUresult imported_given_back(CUresult result) {
    if (result == CUDA_SUCCESS)
        if (VirtualGpu* gpu = process().current().gpu) gpu->driver_gave_back();
    return result;
}

VirtualGpu* gpu_of(const CUmemAllocationProp* properties) {
    if (!properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return nullptr;
    return process().gpu_of(properties->location.id);
}

}  // namespace

CUSLICE_HOOK cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                         unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const auto call = [&] { return CUSLICE_REAL(cuMemCreate)(handle, size, properties, flags); };
    VirtualGpu* gpu = entry.counts() ? gpu_of(properties) : nullptr;
    if (!gpu || !gpu->limited()) return call();
    OverLimit why;
    if (!gpu->reserve(size, &why)) return refuse(Function::cuMemCreate, *gpu, why);
    Reservation reservation(*gpu, size);
    const CUresult result = call();
    if (result != CUDA_SUCCESS) return result;
    if (!pieces().created(*handle, size, gpu->ordinal())) {
        CUSLICE_REAL(cuMemRelease)(*handle);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    reservation.keep();
    return result;
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
