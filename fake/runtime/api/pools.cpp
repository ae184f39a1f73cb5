// Memory pools. Allocating from them is work on a stream: stream_memory.cpp.

#include "fake/runtime/state.h"

using namespace cuslice::fake;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    return on_device(device, [&](CUdevice handle) { return CU(cuDeviceGetDefaultMemPool, 11020)(pool, handle); });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    return on_device(device, [&](CUdevice handle) { return CU(cuDeviceGetMemPool, 11020)(pool, handle); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    return on_device(device, [&](CUdevice handle) { return CU(cuDeviceSetMemPool, 11020)(handle, pool); });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    return in_context(CU(cuMemPoolCreate, 11020), pool, same_layout<const CUmemPoolProps>(properties));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return in_context(CU(cuMemPoolDestroy, 11020), pool); }

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
    return in_context(CU(cuMemPoolTrimTo, 11020), pool, bytes_to_keep);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return in_context(CU(cuMemPoolSetAttribute, 11020), pool, static_cast<CUmemPool_attribute>(attribute), value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return in_context(CU(cuMemPoolGetAttribute, 11020), pool, static_cast<CUmemPool_attribute>(attribute), value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions, size_t count) {
    return in_context(CU(cuMemPoolSetAccess, 11020), pool, same_layout<const CUmemAccessDesc>(descriptions), count);
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
    return in_context(CU(cuMemPoolGetAccess, 11020), reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                      same_layout<CUmemLocation>(location));
}

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool, cudaMemAllocationHandleType type,
                                               unsigned int flags) {
    return in_context(CU(cuMemPoolExportToShareableHandle, 11020), handle, pool,
                      static_cast<CUmemAllocationHandleType>(type), static_cast<unsigned long long>(flags));
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle, cudaMemAllocationHandleType type,
                                                 unsigned int flags) {
    return in_context(CU(cuMemPoolImportFromShareableHandle, 11020), pool, handle,
                      static_cast<CUmemAllocationHandleType>(type), static_cast<unsigned long long>(flags));
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
    return in_context(CU(cuMemPoolExportPointer, 11020), same_layout<CUmemPoolPtrExportData>(data), address(pointer));
}

cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData* data) {
    return in_context(CU(cuMemPoolImportPointer, 11020), reinterpret_cast<CUdeviceptr*>(pointer), pool,
                      same_layout<CUmemPoolPtrExportData>(data));
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
    return on_device(device, [](CUdevice handle) { return CU(cuDeviceGraphMemTrim, 11040)(handle); });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
    return on_device(device, [&](CUdevice handle) {
        return CU(cuDeviceGetGraphMemAttribute, 11040)(handle, static_cast<CUgraphMem_attribute>(attribute), value);
    });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
    return on_device(device, [&](CUdevice handle) {
        return CU(cuDeviceSetGraphMemAttribute, 11040)(handle, static_cast<CUgraphMem_attribute>(attribute), value);
    });
}
