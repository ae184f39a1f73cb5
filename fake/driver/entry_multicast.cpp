// Multicast objects.

#include "fake/driver/addresses.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/mappings.h"
#include "fake/driver/multicast.h"

using namespace cuslice::fake;

CUresult CUDAAPI cuMulticastCreate(CUmemGenericAllocationHandle* out, const CUmulticastObjectProp* prop) {
    CUSLICE_ENTER(cuMulticastCreate)
    if (out == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (prop->handleTypes != 0) CUSLICE_UNSUPPORTED("cuMulticastCreate of an object that is exported");
    return create_multicast(*out, *prop);
}

CUresult CUDAAPI cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
    CUSLICE_ENTER(cuMulticastAddDevice)
    return add_to_team(handle, device);
}

CUresult CUDAAPI cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                                    CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                    unsigned long long flags) {
    CUSLICE_ENTER(cuMulticastBindMem)
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return bind_memory(handle, offset, memory, memory_offset, size);
}

CUresult CUDAAPI cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr address,
                                     size_t size, unsigned long long flags) {
    CUSLICE_ENTER(cuMulticastBindAddr)
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const Found found = find_block(address);
    if (found && found.record.kind == BlockKind::Pool) CUSLICE_UNSUPPORTED("cuMulticastBindAddr of a pool's memory");
    return bind_address(handle, offset, address, size);
}

CUresult CUDAAPI cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size) {
    CUSLICE_ENTER(cuMulticastUnbind)
    return unbind_memory(handle, device, offset, size);
}

CUresult CUDAAPI cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* prop,
                                           CUmulticastGranularity_flags option) {
    CUSLICE_ENTER(cuMulticastGetGranularity)
    if (granularity == nullptr || prop == nullptr || prop->numDevices == 0 ||
        static_cast<unsigned>(option) > CU_MULTICAST_GRANULARITY_RECOMMENDED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *granularity = virtual_granularity;
    return CUDA_SUCCESS;
}
