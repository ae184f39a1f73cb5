// SPDX-License-Identifier: Apache-2.0
// Has the fake driver itself check that the fake GPUs exist as they were asked for.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cli/launch/environment.h"
#include "cli/launch/installation.h"
#include "config/settings.h"

namespace cuslice::cli {

/// Bytes that a context takes on the GPU of this UUID.
using ContextSizes = std::map<std::string, uint64_t>;

/// False, with the fake driver's own words, if it refuses the value of `fake`. `contexts`: of its GPUs.
bool check_fake(const Entry& fake, const Installation& installation, Environment environment, ContextSizes& contexts,
                ConfigError& error);

/// The child's side: asks the driver in `driver_file` about `spec`.
std::string ask_fake_driver(const std::string& driver_file, const std::string& spec);

}  // namespace cuslice::cli
