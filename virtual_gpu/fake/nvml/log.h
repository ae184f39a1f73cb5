#pragma once
// Lines for people: to CUSLICE_FAKE_LOG if that is set, else to stderr.

#include <atomic>
#include <string>

namespace cuslice::fake {

void nvml_say(const std::string& line);

/// Answers for a function that this library does not have: says its name once, returns ERROR_NOT_SUPPORTED.
int nvml_unsupported(const char* name, std::atomic<bool>& said);

}  // namespace cuslice::fake
