// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory.

#include "fake/driver/api_prologue.h"
#include "fake/driver/host_memory.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned kAllAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kAllRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                       CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

/// The device's address of host memory: with unified addressing it is the same.
CUresult device_pointer(Address& out, void* pointer, unsigned flags) {
    HostBlock block;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    if (!find_host_block(reinterpret_cast<Address>(pointer), block))
        return CUDA_ERROR_INVALID_VALUE;
    out = reinterpret_cast<Address>(pointer);
    return CUDA_SUCCESS;
}

CUresult register_flagged(void* pointer, size_t bytes, unsigned flags) {
    // All that a program here can map is memory, and none of it a device's registers.
    const bool io_memory = (flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0;
    if ((flags & ~kAllRegisterFlags) != 0 || io_memory)
        return CUDA_ERROR_INVALID_VALUE;
    return register_host(pointer, bytes, flags);
}

}  // namespace

CUSLICE_ENTRY(cuMemAllocHost, out, bytes) { return allocate_host(out, bytes, 0); }

CUSLICE_ENTRY(cuMemAllocHost_v2, out, bytes) { return allocate_host(out, bytes, 0); }

CUSLICE_ENTRY(cuMemHostAlloc, out, bytes, flags) {
    if ((flags & ~kAllAllocFlags) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate_host(out, bytes, flags);
}

CUSLICE_ENTRY(cuMemFreeHost, pointer) {
    if (pointer == nullptr)
        return CUDA_SUCCESS;
    return free_host(pointer);
}

CUSLICE_ENTRY_PAIR(cuMemHostRegister, register_flagged, pointer, bytes, flags)

CUSLICE_ENTRY(cuMemHostUnregister, pointer) { return unregister_host(pointer); }

CUSLICE_ENTRY(cuMemHostGetFlags, flags, pointer) {
    HostBlock block;
    if (flags == nullptr || !find_host_block(reinterpret_cast<Address>(pointer), block))
        return CUDA_ERROR_INVALID_VALUE;
    // With unified addressing every page-locked block is portable and mapped.
    *flags = block.flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemHostGetDevicePointer_v2, out, pointer, flags) {
    Address address = 0;
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = device_pointer(address, pointer, flags);
    if (result == CUDA_SUCCESS)
        *out = address;
    return result;
}

CUSLICE_ENTRY(cuMemHostGetDevicePointer, out, pointer, flags) {
    Address address = 0;
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(device_pointer(address, pointer, flags));
    if (address > 0xffffffffULL)
        return CUDA_ERROR_INVALID_VALUE;  // 32 bits can't say it
    *out = static_cast<CUdeviceptr_v1>(address);
    return CUDA_SUCCESS;
}
