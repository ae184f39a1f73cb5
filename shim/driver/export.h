#pragma once
#include "virtual_gpu/driver/cuda_api.h"

// Before the definition of every hook. Its type is checked against cuda.h by the declaration there.
#define CUSLICE_HOOK extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
