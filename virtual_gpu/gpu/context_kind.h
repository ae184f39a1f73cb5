// SPDX-License-Identifier: Apache-2.0
// Contexts that take the same memory of a GPU, as far as that can be told before they are made.
#pragma once

#include <cstdint>

namespace cuslice {

/// A number for how this process makes contexts: of the variables of CUDA's that are set, and of MPS, whose contexts
/// are small. `environment`: NAME=VALUE, and a null at the end. Never 0.
uint64_t context_kind(const char* const* environment);

/// The same for a context with these flags and under this driver, by its CUDA version. Never 0.
uint64_t context_kind(uint64_t of_process, unsigned flags, int cuda_version);

}  // namespace cuslice
