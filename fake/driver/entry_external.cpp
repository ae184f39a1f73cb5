// SPDX-License-Identifier: Apache-2.0
// External memory: what another API exported as a descriptor. Here that API can only be this driver's own physical
// memory.

#include <unistd.h>

#include <map>

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/external.h"
#include "fake/driver/physical.h"
#include "fake/driver/state.h"
#include "fake/driver/virtual_memory.h"

using namespace cuslice::fake;

namespace {

struct External {
    CUmemGenericAllocationHandle memory = 0;
    int ordinal = 0;
    size_t size = 0;
};
constinit HandleTable<External, CUexternalMemory, HandleKind::ExternalMemory> externals;

struct Buffer {
    Address base = 0;
    size_t size = 0;
};
/// Mapped buffers by the address that the program has; the driver's lock is held.
auto& buffers() {
    static auto* all = new std::map<Address, Buffer>;
    return *all;
}

/// The whole memory at addresses of its own.
CUresult map_whole(const External& external, Address& base) {
    CUSLICE_TRY(reserve_addresses(base, external.size, 0));
    CUresult result = map_physical(base, external.size, 0, external.memory);
    if (result == CUDA_SUCCESS) {
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, external.ordinal},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        result = set_mapped_access(base, external.size, &access, 1);
    }
    if (result != CUDA_SUCCESS)
        free_addresses(base, external.size);
    return result;
}

}  // namespace

namespace cuslice::fake {

bool free_external_buffer(Address address) {
    const DriverLock hold;
    const auto found = buffers().find(address);
    if (found == buffers().end())
        return false;
    unmap_physical(found->second.base, found->second.size);
    free_addresses(found->second.base, found->second.size);
    buffers().erase(found);
    return true;
}

}  // namespace cuslice::fake

CUSLICE_ENTRY(cuImportExternalMemory, out, handle) {
    if (out == nullptr || handle == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    if (handle->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        CUSLICE_UNSUPPORTED("external memory that is not a file descriptor");
    if ((handle->flags & ~CUDA_EXTERNAL_MEMORY_DEDICATED) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemGenericAllocationHandle memory = 0;
    CUSLICE_TRY(import_physical(memory, handle->handle.fd));
    CUmemAllocationProp prop{};
    physical_properties(memory, prop);
    const size_t size = physical_size(memory);
    if (handle->size == 0 || handle->size > size || prop.location.id != context->gpu->ordinal) {
        release_physical(memory);
        return CUDA_ERROR_INVALID_VALUE;
    }
    close(handle->handle.fd);  // documented: it is the driver's from now on
    *out = externals.create(External{memory, prop.location.id, size}).first;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuExternalMemoryGetMappedBuffer, out, handle, buffer) {
    if (out == nullptr || buffer == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_FIND_IN(external, externals, handle);
    if (buffer->flags != 0 || buffer->size == 0 || buffer->offset > external->size ||
        buffer->size > external->size - buffer->offset) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Address base = 0;
    CUSLICE_TRY(map_whole(*external, base));
    buffers()[base + buffer->offset] = {base, external->size};
    *out = base + buffer->offset;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDestroyExternalMemory, handle) {
    const DriverLock hold;
    CUSLICE_FIND_IN(external, externals, handle);
    release_physical(external->memory);
    externals.destroy(handle);
    return CUDA_SUCCESS;
}
