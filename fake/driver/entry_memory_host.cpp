// Page-locked host memory.

#include "fake/driver/api_prologue.h"
#include "fake/driver/host_memory.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned all_alloc_flags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned all_register_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                        CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

/// The device's address of host memory: with unified addressing it is the same.
CUresult device_pointer(Address& out, void* pointer, unsigned flags) {
    Context* context = nullptr;
    HostBlock block;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    if (!find_host_block(reinterpret_cast<Address>(pointer), block)) return CUDA_ERROR_INVALID_VALUE;
    out = reinterpret_cast<Address>(pointer);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuMemAllocHost(void** out, unsigned int bytes) {
    CUSLICE_ENTER(cuMemAllocHost)
    return allocate_host(out, bytes, 0);
}

CUresult CUDAAPI cuMemAllocHost_v2(void** out, size_t bytes) {
    CUSLICE_ENTER(cuMemAllocHost_v2)
    return allocate_host(out, bytes, 0);
}

CUresult CUDAAPI cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) {
    CUSLICE_ENTER(cuMemHostAlloc)
    if ((flags & ~all_alloc_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    return allocate_host(out, bytes, flags);
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
    CUSLICE_ENTER(cuMemFreeHost)
    if (pointer == nullptr) return CUDA_SUCCESS;
    return free_host(pointer);
}

CUresult CUDAAPI cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
    CUSLICE_ENTER(cuMemHostRegister)
    if ((flags & ~all_register_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    return register_host(pointer, bytes, flags);
}

CUresult CUDAAPI cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
    CUSLICE_ENTER(cuMemHostRegister_v2)
    if ((flags & ~all_register_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    return register_host(pointer, bytes, flags);
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
    CUSLICE_ENTER(cuMemHostUnregister)
    return unregister_host(pointer);
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int* flags, void* pointer) {
    CUSLICE_ENTER(cuMemHostGetFlags)
    HostBlock block;
    if (flags == nullptr || !find_host_block(reinterpret_cast<Address>(pointer), block))
        return CUDA_ERROR_INVALID_VALUE;
    // With unified addressing every page-locked block is portable and mapped.
    *flags = block.flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned int flags) {
    CUSLICE_ENTER(cuMemHostGetDevicePointer_v2)
    Address address = 0;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = device_pointer(address, pointer, flags);
    if (result == CUDA_SUCCESS) *out = address;
    return result;
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr_v1* out, void* pointer, unsigned int flags) {
    CUSLICE_ENTER(cuMemHostGetDevicePointer)
    Address address = 0;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = device_pointer(address, pointer, flags);
    if (result != CUDA_SUCCESS) return result;
    if (address > 0xffffffffULL) return CUDA_ERROR_INVALID_VALUE;  // 32 bits can't say it
    *out = static_cast<CUdeviceptr_v1>(address);
    return CUDA_SUCCESS;
}
