#pragma once
// Lines for people: to CUSLICE_FAKE_LOG if that is set, else to stderr.

#include <atomic>
#include <string>

#include "virtual_gpu/driver/nvml.h"

namespace cuslice::fake {

void nvml_say(const std::string& line);

/// Answers for a function that this library does not have: says its name once, returns ERROR_NOT_SUPPORTED.
int nvml_unsupported(const char* name, std::atomic<bool>& said);
/// The same, without a word where NVIDIA's library answers so too. `first`: what the function is given first, a device
/// if its name begins with nvmlDevice.
int nvml_refuse(const char* name, nvml::Device first, std::atomic<bool>& said);

}  // namespace cuslice::fake
