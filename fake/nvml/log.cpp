// SPDX-License-Identifier: Apache-2.0
#include "fake/nvml/log.h"

#include "fake/log_line.h"

namespace cuslice::fake {

void nvml_say(const std::string& line) { write_line("cuslice fake NVML: " + line); }

}  // namespace cuslice::fake
