// SPDX-License-Identifier: Apache-2.0
#pragma once
// The answer of functions that this driver does not have, where NVIDIA's header must not be included.

#include <atomic>

namespace cuslice::fake {

/// Says the function's name once and returns CUDA_ERROR_NOT_SUPPORTED; before cuInit CUDA_ERROR_NOT_INITIALIZED.
int log_unsupported(const char* name, std::atomic<bool>& said);

}  // namespace cuslice::fake
