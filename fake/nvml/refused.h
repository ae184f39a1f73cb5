// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions that this library does not have.

#include <atomic>

// Not nvml.h: unsupported.cpp defines with other types what that declares.
struct nvmlDevice_st;

namespace cuslice::fake {

/// Answers for such a function: says its name once, returns NVML_ERROR_NOT_SUPPORTED. Without a word where NVIDIA's
/// library answers so too. `first`: what the function is given first, a device if its name begins with nvmlDevice.
int nvml_refuse(const char* name, nvmlDevice_st* first, std::atomic<bool>& said);

}  // namespace cuslice::fake
