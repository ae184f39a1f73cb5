// SPDX-License-Identifier: Apache-2.0
// Virtual memory management.

#include "fake/driver/api_prologue.h"
#include "fake/driver/mappings.h"
#include "fake/driver/physical.h"
#include "fake/driver/state.h"
#include "fake/driver/virtual_memory.h"

using namespace cuslice::fake;

CUSLICE_ENTRY(cuMemAddressReserve, out, size, alignment, hint, flags) {
    if (out == nullptr || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return reserve_addresses(*out, size, alignment);  // the wanted address is a hint, not taken
}

CUSLICE_ENTRY(cuMemAddressFree, address, size) { return free_addresses(address, size); }

CUSLICE_ENTRY(cuMemCreate, out, size, prop, flags) {
    if (out == nullptr || prop == nullptr || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        CUSLICE_UNSUPPORTED("cuMemCreate of memory that is exported as anything but a file descriptor");
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        CUSLICE_UNSUPPORTED("cuMemCreate in host memory");
    return create_physical(*out, size, *prop);
}

CUSLICE_ENTRY(cuMemExportToShareableHandle, out, handle, type, flags) {
    if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    return export_physical(handle, *static_cast<int*>(out));
}

CUSLICE_ENTRY(cuMemImportFromShareableHandle, out, os_handle, type) {
    if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    return import_physical(*out, static_cast<int>(reinterpret_cast<intptr_t>(os_handle)));
}

CUSLICE_ENTRY(cuMemRelease, handle) { return release_physical(handle); }

CUSLICE_ENTRY(cuMemMap, address, size, offset, handle, flags) {
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return map_physical(address, size, offset, handle);
}

CUSLICE_ENTRY(cuMemUnmap, address, size) { return unmap_physical(address, size); }

CUSLICE_ENTRY(cuMemSetAccess, address, size, access, count) {
    if (access == nullptr || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return set_mapped_access(address, size, access, count);
}

CUSLICE_ENTRY(cuMemGetAccess, flags, location, address) {
    if (flags == nullptr || location == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return get_mapped_access(address, *location, *flags);
}

CUSLICE_ENTRY(cuMemGetAllocationGranularity, granularity, prop, option) {
    if (granularity == nullptr || prop == nullptr ||
        static_cast<unsigned>(option) > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && driver().gpu(prop->location.id) == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *granularity = kVirtualGranularity;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemGetAllocationPropertiesFromHandle, prop, handle) {
    if (prop == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return physical_properties(handle, *prop);
}

CUSLICE_ENTRY(cuMemRetainAllocationHandle, out, address) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return retain_physical(reinterpret_cast<Address>(address), *out);
}
