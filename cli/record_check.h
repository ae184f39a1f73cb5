#pragma once
#include "cli/environment.h"
#include "config/config_error.h"
#include "config/settings.h"

namespace cuslice::cli {

/// Whether the file that the program is to be recorded in can be made: in the place of the launcher, whose pid the
/// program takes over. A file that is there already is refused, as a recording overwrites nothing; but not inside
/// another `cuslice run`, whose programs write to further names beside it.
bool check_record(const Settings& settings, const Environment& environment, ConfigError& error);

}  // namespace cuslice::cli
