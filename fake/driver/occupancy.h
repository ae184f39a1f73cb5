// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many blocks of a kernel fit on a multiprocessor.

#include <cstddef>

#include "fake/driver/cuda_api.h"
#include "fake/driver/image.h"
#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// 0 if not even one block of so many threads and so much dynamic shared memory fits.
int blocks_per_multiprocessor(const KernelInfo& kernel, const GpuSpec& gpu, int threads, size_t dynamic_shared);

/// True if whole clusters, as the attribute names them, make up the configuration's grid.
bool divides_grid(const CUlaunchConfig& config, const CUlaunchAttribute& attribute);

}  // namespace cuslice::fake
