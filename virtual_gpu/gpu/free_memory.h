// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice {

/// Bytes of the GPU whose context is current in this thread, as CUDA has them. False if there is none, or if the GPU's
/// memory is the host's, where every program of the host moves its free memory. Thread-safe.
bool free_memory(uint64_t* free, uint64_t* total);

}  // namespace cuslice
