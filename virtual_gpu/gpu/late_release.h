// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

/// Bytes of an allocation that the program has given back and that the driver will have at a time of its own: they stay
/// charged until they are seen to be gone. Where the driver's figure can't be read they are released at once.
/// Thread-safe.
void release_later(VirtualGpu& gpu, uint64_t bytes);

/// Bytes of an allocation that the program has given back and the driver may not have: another process still holds
/// them, or they are in allocations of a pool that is gone. They stay charged until the driver's figure says that they
/// are free; where there is none, to the end of the process. Thread-safe.
void release_shared(VirtualGpu& gpu, uint64_t bytes);

/// Around a driver call by which exported memory of cuMemCreate may lose its last handle or mapping in this process;
/// what does is released in between, with the figure in bytes that the first one returns. Others may keep such memory
/// on the GPU without NVML's listing it with anybody: then it stays charged here (UnlistedMemory). Thread-safe; these
/// ask NVML: no lock may be held.
uint64_t before_exported_release(VirtualGpu& gpu);
void release_exported(VirtualGpu& gpu, uint64_t bytes, uint64_t before);
void after_exported_release(VirtualGpu& gpu);

}  // namespace cuslice
