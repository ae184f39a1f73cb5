// SPDX-License-Identifier: Apache-2.0
// Memory pools. Allocating from them is work on a stream: stream_memory.cpp.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

CUSLICE_FORWARD_DEVICE(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, pool, device)
CUSLICE_FORWARD_DEVICE(cudaDeviceGetMemPool, cuDeviceGetMemPool, 11020, pool, device)
CUSLICE_FORWARD_DEVICE(cudaDeviceSetMemPool, cuDeviceSetMemPool, 11020, device, pool)
CUSLICE_FORWARD(cudaMemPoolCreate, cuMemPoolCreate, 11020, pool, properties)
CUSLICE_FORWARD(cudaMemPoolDestroy, cuMemPoolDestroy, 11020, pool)
CUSLICE_FORWARD(cudaMemPoolTrimTo, cuMemPoolTrimTo, 11020, pool, bytes_to_keep)
CUSLICE_FORWARD(cudaMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, pool, attribute, value)
CUSLICE_FORWARD(cudaMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, pool, attribute, value)
CUSLICE_FORWARD(cudaMemPoolSetAccess, cuMemPoolSetAccess, 11020, pool, descriptions, count)
CUSLICE_FORWARD(cudaMemPoolGetAccess, cuMemPoolGetAccess, 11020, flags, pool, location)
CUSLICE_FORWARD(cudaMemPoolExportToShareableHandle, cuMemPoolExportToShareableHandle, 11020, handle, pool, type, flags)
CUSLICE_FORWARD(cudaMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle, 11020, pool, handle, type,
                flags)
CUSLICE_FORWARD(cudaMemPoolExportPointer, cuMemPoolExportPointer, 11020, data, pointer)
CUSLICE_FORWARD(cudaMemPoolImportPointer, cuMemPoolImportPointer, 11020, pointer, pool, data)
CUSLICE_FORWARD_DEVICE(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, device)
CUSLICE_FORWARD_DEVICE(cudaDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, 11040, device, attribute, value)
CUSLICE_FORWARD_DEVICE(cudaDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute, 11040, device, attribute, value)
