#pragma once
// NVIDIA's own header, with every older form of every function declared, and all of them exported: what an entry_*.cpp
// defines is checked against it by the compiler.

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop
