// Whether fake GPUs exist as they were asked for: the fake driver itself knows.
#pragma once

#include <string>

#include "cli/environment.h"
#include "cli/installation.h"
#include "config/settings.h"

namespace cuslice::cli {

/// False, with the fake driver's own words, if it refuses the value of `fake`.
bool check_fake(const Entry& fake, const Installation& installation, Environment environment, ConfigError& error);

/// The child's side: asks the driver in `driver_file` about `spec`.
std::string ask_fake_driver(const std::string& driver_file, const std::string& spec);

}  // namespace cuslice::cli
