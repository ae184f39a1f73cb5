// Virtual memory management.

#include "fake/driver/api_prologue.h"
#include "fake/driver/mappings.h"
#include "fake/driver/physical.h"
#include "fake/driver/state.h"
#include "fake/driver/virtual_memory.h"

using namespace cuslice::fake;

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr,
                                     unsigned long long flags) {
    CUSLICE_ENTER(cuMemAddressReserve)
    Address address = 0;
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = reserve_addresses(address, size, alignment);  // the wanted address is a hint, not taken
    if (result == CUDA_SUCCESS) *out = address;
    return result;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t size) {
    CUSLICE_ENTER(cuMemAddressFree)
    return free_addresses(address, size);
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp* prop,
                             unsigned long long flags) {
    CUSLICE_ENTER(cuMemCreate)
    if (out == nullptr || prop == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        CUSLICE_UNSUPPORTED("cuMemCreate of memory that is exported as anything but a file descriptor");
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) CUSLICE_UNSUPPORTED("cuMemCreate in host memory");
    return create_physical(*out, size, *prop);
}

CUresult CUDAAPI cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type, unsigned long long flags) {
    CUSLICE_ENTER(cuMemExportToShareableHandle)
    if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    return export_physical(handle, *static_cast<int*>(out));
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle,
                                                CUmemAllocationHandleType type) {
    CUSLICE_ENTER(cuMemImportFromShareableHandle)
    if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    return import_physical(*out, static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle)));
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
    CUSLICE_ENTER(cuMemRelease)
    return release_physical(handle);
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
    CUSLICE_ENTER(cuMemMap)
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return map_physical(address, size, offset, handle);
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
    CUSLICE_ENTER(cuMemUnmap)
    return unmap_physical(address, size);
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* access, size_t count) {
    CUSLICE_ENTER(cuMemSetAccess)
    if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    return set_mapped_access(address, size, access, count);
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    CUSLICE_ENTER(cuMemGetAccess)
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return get_mapped_access(address, *location, *flags);
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                               CUmemAllocationGranularity_flags option) {
    CUSLICE_ENTER(cuMemGetAllocationGranularity)
    if (granularity == nullptr || prop == nullptr ||
        static_cast<unsigned>(option) > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && driver().gpu(prop->location.id) == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *granularity = virtual_granularity;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                        CUmemGenericAllocationHandle handle) {
    CUSLICE_ENTER(cuMemGetAllocationPropertiesFromHandle)
    if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return physical_properties(handle, *prop);
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
    CUSLICE_ENTER(cuMemRetainAllocationHandle)
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return retain_physical(reinterpret_cast<Address>(address), *out);
}
