// SPDX-License-Identifier: Apache-2.0
// External memory: of graphics APIs, and of whatever else a descriptor stands for.
#include "shim/driver/counted.h"
#include "shim/driver/export.h"

namespace cuslice {

CUSLICE_HOOK(cuImportExternalMemory, memory, handle) {
    const HookEntry entry;
    return counted_making(CUSLICE_REAL(cuImportExternalMemory), CUSLICE_REAL(cuDestroyExternalMemory),
                          current_gpu(entry), memory, handle);
}

CUSLICE_HOOK(cuExternalMemoryGetMappedBuffer, address, memory, buffer) {
    const HookEntry entry;
    if (VirtualGpu* gpu = current_gpu(entry))
        gpu->unrecorded_frees().watch();
    return counted_making(CUSLICE_REAL(cuExternalMemoryGetMappedBuffer), CUSLICE_REAL(cuMemFree_v2), current_gpu(entry),
                          address, memory, buffer);
}

CUSLICE_HOOK(cuExternalMemoryGetMappedMipmappedArray, array, memory, descriptor) {
    const HookEntry entry;
    return counted_making(CUSLICE_REAL(cuExternalMemoryGetMappedMipmappedArray), CUSLICE_REAL(cuMipmappedArrayDestroy),
                          current_gpu(entry), array, memory, descriptor);
}

CUSLICE_HOOK(cuDestroyExternalMemory, memory) {
    const HookEntry entry;
    const CUresult result = CUSLICE_REAL(cuDestroyExternalMemory)(memory);
    VirtualGpu* gpu = result == CUDA_SUCCESS ? current_gpu(entry) : nullptr;
    if (gpu)
        gpu->driver_gave_back();
    return result;
}

}  // namespace cuslice
