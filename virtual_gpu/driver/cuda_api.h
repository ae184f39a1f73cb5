// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's own declarations, with every old form of a function under its own exported name (cuMemAlloc beside
// cuMemAlloc_v2).
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

// Functions that are newer than that header.
extern "C" {
#define CUSLICE_PROTOTYPE(symbol, parameters) CUresult CUDAAPI symbol parameters;
#include "virtual_gpu/driver/functions.def"
}
