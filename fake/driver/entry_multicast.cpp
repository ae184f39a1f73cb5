// SPDX-License-Identifier: Apache-2.0
// Multicast objects.

#include "fake/driver/addresses.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/mappings.h"
#include "fake/driver/multicast.h"

using namespace cuslice::fake;

CUSLICE_ENTRY(cuMulticastCreate, out, prop) {
    if (out == nullptr || prop == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->handleTypes != 0)
        CUSLICE_UNSUPPORTED("cuMulticastCreate of an object that is exported");
    return create_multicast(*out, *prop);
}

CUSLICE_ENTRY(cuMulticastAddDevice, handle, device) { return add_to_team(handle, device); }

CUSLICE_ENTRY(cuMulticastBindMem, handle, offset, memory, memory_offset, size, flags) {
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return bind_memory(handle, offset, memory, memory_offset, size);
}

CUSLICE_ENTRY(cuMulticastBindAddr, handle, offset, address, size, flags) {
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const Found found = find_block(address);
    if (found && found.record.kind == BlockKind::Pool)
        CUSLICE_UNSUPPORTED("cuMulticastBindAddr of a pool's memory");
    return bind_address(handle, offset, address, size);
}

CUSLICE_ENTRY(cuMulticastUnbind, handle, device, offset, size) { return unbind_memory(handle, device, offset, size); }

CUSLICE_ENTRY(cuMulticastGetGranularity, granularity, prop, option) {
    if (granularity == nullptr || prop == nullptr || prop->numDevices == 0 ||
        static_cast<unsigned>(option) > CU_MULTICAST_GRANULARITY_RECOMMENDED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *granularity = kVirtualGranularity;
    return CUDA_SUCCESS;
}
