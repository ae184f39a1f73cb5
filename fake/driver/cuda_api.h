// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's own header, with every older form of every function declared, and all of them exported: what an entry_*.cpp
// defines is checked against it by the compiler.

#pragma GCC visibility push(default)
#include "virtual_gpu/driver/cuda_api.h"

#include <cudaProfiler.h>
#pragma GCC visibility pop
