// SPDX-License-Identifier: Apache-2.0
// The names with which CUDA 4.0 replaced cudaThread* by cudaDevice*: 11 and 12 still have the old ones.

#include "fake/runtime/versioned/form.h"

#if CUSLICE_CUDART_VERSION < 13000

extern "C" {
cudaError_t thread_exit() CUSLICE_EXPORT_AS(cudaThreadExit);
cudaError_t thread_synchronize() CUSLICE_EXPORT_AS(cudaThreadSynchronize);
cudaError_t thread_set_limit(cudaLimit, size_t) CUSLICE_EXPORT_AS(cudaThreadSetLimit);
cudaError_t thread_get_limit(size_t*, cudaLimit) CUSLICE_EXPORT_AS(cudaThreadGetLimit);
cudaError_t thread_get_cache_config(cudaFuncCache*) CUSLICE_EXPORT_AS(cudaThreadGetCacheConfig);
cudaError_t thread_set_cache_config(cudaFuncCache) CUSLICE_EXPORT_AS(cudaThreadSetCacheConfig);
}

cudaError_t thread_exit() { return cudaDeviceReset(); }
cudaError_t thread_synchronize() { return cudaDeviceSynchronize(); }
cudaError_t thread_set_limit(cudaLimit limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
cudaError_t thread_get_limit(size_t* value, cudaLimit limit) { return cudaDeviceGetLimit(value, limit); }
cudaError_t thread_get_cache_config(cudaFuncCache* config) { return cudaDeviceGetCacheConfig(config); }
cudaError_t thread_set_cache_config(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }

#endif
