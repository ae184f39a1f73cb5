// SPDX-License-Identifier: Apache-2.0
// Multicast objects: what is bound to one goes on being held when its own handles and mappings are gone.
#include "shim/driver/counted_physical.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

// Page tables and the like, if the driver takes any, are seen at the next measurement. Not measured around the call,
// which waits for other threads to complete the team.
void bound_on(CUmemGenericAllocationHandle memory) {
    CUmemAllocationProp properties{};
    if (CUSLICE_REAL(cuMemGetAllocationPropertiesFromHandle)(&properties, memory) != CUDA_SUCCESS)
        return;
    if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return;
    if (VirtualGpu* gpu = process().gpu_of(properties.location.id))
        gpu->driver_gave_back();
}

}  // namespace

CUSLICE_HOOK(cuMulticastCreate, object, properties) {
    const HookEntry entry;
    OutParameter<CUmemGenericAllocationHandle> made(object);
    const CUresult result = CUSLICE_REAL(cuMulticastCreate)(made.place(), properties);
    if (result != CUDA_SUCCESS)
        return result;
    if (entry.counts() && !physical_memory().created_object(*made)) {
        CUSLICE_REAL(cuMemRelease)(*made);  // no memory to write it down in
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.keep();
    return result;
}

// Memory that the driver takes for the team is charged, but the call can't be undone: a device stays in the team for
// as long as the object lives.
CUSLICE_HOOK(cuMulticastAddDevice, object, device) {
    const HookEntry entry;
    VirtualGpu* const gpu = named_gpu(entry, device);
    if (!gpu)
        return CUSLICE_REAL(cuMulticastAddDevice)(object, device);
    DriverFootprint::Step step = DriverSteps(*gpu).before();
    const CUresult result = CUSLICE_REAL(cuMulticastAddDevice)(object, device);
    if (result == CUDA_SUCCESS)
        DriverSteps(*gpu).after(step, nullptr);
    return result;
}

CUSLICE_HOOK(cuMulticastBindMem, object, offset, memory, memory_offset, size, flags) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMulticastBindMem)(object, offset, memory, memory_offset, size, flags);
    if (result != CUDA_SUCCESS || !entry.counts())
        return result;
    bound_on(memory);
    if (physical_memory().bound(object, offset, size, memory))
        return result;
    CUmemAllocationProp properties{};
    CUSLICE_REAL(cuMemGetAllocationPropertiesFromHandle)(&properties, memory);
    CUSLICE_REAL(cuMulticastUnbind)(object, properties.location.id, offset, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// Memory of a pool can be bound like this too: the pool's reserved bytes count.
CUSLICE_HOOK(cuMulticastBindAddr, object, offset, address, size, flags) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuMulticastBindAddr)(object, offset, address, size, flags);
    if (result != CUDA_SUCCESS || !entry.counts())
        return result;
    int device = -1;
    CUSLICE_REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (VirtualGpu* gpu = process().gpu_of(device))
        gpu->driver_gave_back();
    if (physical_memory().bound_at(object, offset, size, address))
        return result;
    CUSLICE_REAL(cuMulticastUnbind)(object, device, offset, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUSLICE_HOOK(cuMulticastUnbind, object, device, offset, size) {
    const HookEntry entry;
    if (!entry.counts())
        return CUSLICE_REAL(cuMulticastUnbind)(object, device, offset, size);
    const PhysicalMemory::Unbinding binding = physical_memory().unbind(object, device, offset);
    EndingMemory ending(binding.exported);
    const CUresult result = CUSLICE_REAL(cuMulticastUnbind)(object, device, offset, size);
    if (result != CUDA_SUCCESS) {
        physical_memory().unbind_failed(binding);
        return result;
    }
    physical_memory().unbind_done(binding, ending.on_freed());
    if (VirtualGpu* gpu = process().gpu_of(device))
        gpu->driver_gave_back();
    return result;
}

}  // namespace cuslice
