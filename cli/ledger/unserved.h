// SPDX-License-Identifier: Apache-2.0
// Variables of HAMi and MPS that limit something else than memory. Who finds that cuslice reads their limits of memory
// believes that it reads these too.
#pragma once

#include <vector>

#include "cli/launch/environment.h"
#include "config/config_error.h"

namespace cuslice::cli {

/// A notice for each that is set, unless the tool that serves it is here too. An outer launcher has said it already.
std::vector<ConfigError> find_unserved(const Environment& environment);
/// One line for each of them.
void warn_unserved(const Environment& environment);

}  // namespace cuslice::cli
