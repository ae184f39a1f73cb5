// SPDX-License-Identifier: Apache-2.0
// Pools by the place of their memory, since CUDA 13.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 13000

CUSLICE_FORWARD(cudaMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000, pool, location, type)
CUSLICE_FORWARD(cudaMemGetMemPool, cuMemGetMemPool, 13000, pool, location, type)
CUSLICE_FORWARD(cudaMemSetMemPool, cuMemSetMemPool, 13000, location, type, pool)

#endif
