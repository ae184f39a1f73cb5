// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines for people: to CUSLICE_FAKE_LOG if that is set, else to stderr.

#include <string>

namespace cuslice::fake {

void nvml_say(const std::string& line);

}  // namespace cuslice::fake
