// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/log.h"

#include "fake/log_line.h"

namespace cuslice::fake {

void log_line(const std::string& line) { write_line("cuslice fake GPU: " + line); }

}  // namespace cuslice::fake
