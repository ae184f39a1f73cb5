// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory pools are the driver's, by the same handles and structures: each part has its own, which the driver shim
// knows.
#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps) &&
              sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));

inline auto* as_driver(cudaMemLocation* location) { return reinterpret_cast<CUmemLocation*>(location); }
inline auto as_driver(cudaMemAllocationType type) { return static_cast<CUmemAllocationType>(type); }

template <int kVersion>
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    const cudaError_t result = CUSLICE_NEXT(cudaDeviceGetDefaultMemPool)(pool, physical(device));
    return result == cudaSuccess && view() ? as_runtime(cuDeviceGetDefaultMemPool(pool, device)) : result;
}

template <int kVersion>
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    const cudaError_t result = CUSLICE_NEXT(cudaDeviceGetMemPool)(pool, physical(device));
    return result == cudaSuccess && view() ? as_runtime(cuDeviceGetMemPool(pool, device)) : result;
}

template <int kVersion>
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    if (physical(device) < 0 || !view())
        return CUSLICE_NEXT(cudaDeviceSetMemPool)(physical(device), pool);
    return as_runtime(cuDeviceSetMemPool(device, pool));
}

template <int kVersion>
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    if (!view() || !properties)
        return CUSLICE_NEXT(cudaMemPoolCreate)(pool, properties);
    return as_runtime(cuMemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(properties)));
}

template <int kVersion>
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* wishes, size_t count) {
    if (!view())
        return CUSLICE_NEXT(cudaMemPoolSetAccess)(pool, wishes, count);
    return as_runtime(cuMemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(wishes), count));
}

template <int kVersion>
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
    if (!view())
        return CUSLICE_NEXT(cudaMemPoolGetAccess)(flags, pool, location);
    return as_runtime(cuMemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool, as_driver(location)));
}

template <int kVersion>
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
    if (!view())
        return CUSLICE_NEXT(cudaMemGetDefaultMemPool)(pool, location, type);
    return as_runtime(cuMemGetDefaultMemPool(pool, as_driver(location), as_driver(type)));
}

template <int kVersion>
cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
    if (!view())
        return CUSLICE_NEXT(cudaMemGetMemPool)(pool, location, type);
    return as_runtime(cuMemGetMemPool(pool, as_driver(location), as_driver(type)));
}

template <int kVersion>
cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
    if (!view())
        return CUSLICE_NEXT(cudaMemSetMemPool)(location, type, pool);
    return as_runtime(cuMemSetMemPool(as_driver(location), as_driver(type), pool));
}

}  // namespace cuslice::runtime
