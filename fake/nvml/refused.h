#pragma once
// Functions that this library does not have.

#include <atomic>

#include "virtual_gpu/driver/nvml.h"

namespace cuslice::fake {

/// Answers for such a function: says its name once, returns ERROR_NOT_SUPPORTED. Without a word where NVIDIA's library
/// answers so too. `first`: what the function is given first, a device if its name begins with nvmlDevice.
int nvml_refuse(const char* name, nvml::Device first, std::atomic<bool>& said);

}  // namespace cuslice::fake
