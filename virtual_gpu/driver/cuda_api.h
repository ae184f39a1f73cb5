#pragma once
// NVIDIA's own declarations, with every old form of a function under its own exported name (cuMemAlloc beside
// cuMemAlloc_v2).
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
