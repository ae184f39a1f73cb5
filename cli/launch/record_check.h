// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/launch/environment.h"
#include "config/config_error.h"
#include "config/settings.h"

namespace cuslice::cli {

/// True if the file for the program's recording can be made. For %p its name has the launcher's pid, which the
/// program takes over. An existing file is refused, as a recording overwrites nothing, but not inside another
/// `cuslice run`, whose programs write to further names beside it. Stacks without a recording are refused, too.
bool check_record(const Settings& settings, const Environment& environment, ConfigError& error);

}  // namespace cuslice::cli
