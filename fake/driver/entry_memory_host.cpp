// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory.

#include <limits>

#include "fake/driver/api_prologue.h"
#include "fake/driver/host_memory.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned kAllAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kAllRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                       CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

/// The device's address of host memory: with unified addressing it is the same. The oldest form has 32 bits for it.
template <typename Pointer>
CUresult device_pointer(Pointer* out, void* pointer, unsigned flags) {
    HostBlock block;
    const auto address = reinterpret_cast<Address>(pointer);
    if (out == nullptr || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    if (!find_host_block(address, block) || address > std::numeric_limits<Pointer>::max())
        return CUDA_ERROR_INVALID_VALUE;
    *out = static_cast<Pointer>(address);
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

CUSLICE_ENTRY_PAIR(cuMemHostGetDevicePointer, device_pointer, out, pointer, flags)
