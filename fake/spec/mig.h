// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MIG instances that a fake GPU is divided into: each is a GPU of its own, with its own books.

#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// False, and what is wrong in `why`, if the GPU can't be divided as its `mig` says: an instance is written "1g.18gb"
/// and has that many sevenths of the multiprocessors and as many eighths of the memory as its gigabytes come nearest
/// to.
bool check_instances(const GpuSpec& gpu, std::string& why);

/// The instances, in NVML's order; none where MIG is not enabled. Memory and multiprocessors are shares of the GPU's;
/// what NVIDIA's instances have is somewhat less.
std::vector<GpuSpec> instances_of(const GpuSpec& gpu);

}  // namespace cuslice::fake
