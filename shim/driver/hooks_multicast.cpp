// Multicast objects: what is bound to one goes on being held when its own handles and mappings are gone.
#include "shim/driver/counted_physical.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

// Page tables and the like, if the driver takes any, are seen at the next measurement. Not measured around the call,
// which waits for other threads to complete the team.
void bound_on(CUmemGenericAllocationHandle memory) {
    CUmemAllocationProp properties{};
    if (CUSLICE_REAL(cuMemGetAllocationPropertiesFromHandle)(&properties, memory) != CUDA_SUCCESS) return;
    if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
    if (VirtualGpu* gpu = process().gpu_of(properties.location.id)) gpu->driver_gave_back();
}

}  // namespace

CUSLICE_HOOK cuMulticastCreate(CUmemGenericAllocationHandle* object, const CUmulticastObjectProp* properties) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMulticastCreate)(object, properties);
    if (result != CUDA_SUCCESS || !entry.counts() || pieces().created_object(*object)) return result;
    CUSLICE_REAL(cuMemRelease)(*object);  // no memory to write it down in
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// What the driver takes for it counts, but nothing can undo it: a device is of the team as long as the object lives.
CUSLICE_HOOK cuMulticastAddDevice(CUmemGenericAllocationHandle object, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    VirtualGpu* gpu = entry.counts() ? process().gpu_of(device) : nullptr;
    if (!gpu || !gpu->limited()) return CUSLICE_REAL(cuMulticastAddDevice)(object, device);
    DriverPart::Step step = gpu->before_driver_step();
    const CUresult result = CUSLICE_REAL(cuMulticastAddDevice)(object, device);
    if (result == CUDA_SUCCESS) gpu->after_driver_step(step, nullptr);
    return result;
}

CUSLICE_HOOK cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle memory,
                                size_t memory_offset, size_t size, unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMulticastBindMem)(object, offset, memory, memory_offset, size, flags);
    if (result != CUDA_SUCCESS || !entry.counts()) return result;
    bound_on(memory);
    if (pieces().bound(object, offset, size, memory)) return result;
    CUmemAllocationProp properties{};
    CUSLICE_REAL(cuMemGetAllocationPropertiesFromHandle)(&properties, memory);
    CUSLICE_REAL(cuMulticastUnbind)(object, properties.location.id, offset, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// Memory of a pool can be bound like this too: the pool's reserved bytes count.
CUSLICE_HOOK cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr address, size_t size,
                                 unsigned long long flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMulticastBindAddr)(object, offset, address, size, flags);
    if (result != CUDA_SUCCESS || !entry.counts()) return result;
    int device = -1;
    CUSLICE_REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (VirtualGpu* gpu = process().gpu_of(device)) gpu->driver_gave_back();
    if (pieces().bound_at(object, offset, size, address)) return result;
    CUSLICE_REAL(cuMulticastUnbind)(object, device, offset, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUSLICE_HOOK cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset, size_t size) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    if (!entry.counts()) return CUSLICE_REAL(cuMulticastUnbind)(object, device, offset, size);
    const PhysicalMemory::Unbinding binding = pieces().unbind(object, device, offset);
    const CUresult result = CUSLICE_REAL(cuMulticastUnbind)(object, device, offset, size);
    if (result != CUDA_SUCCESS) {
        pieces().unbind_failed(binding);
        return result;
    }
    pieces().unbind_done(binding, give_back);
    if (VirtualGpu* gpu = process().gpu_of(device)) gpu->driver_gave_back();
    return result;
}

}  // namespace cuslice
