// A group's limit is what its first member said. Whoever joins a group that lives and says another one is told so.
#pragma once

#include "cli/environment.h"
#include "cli/installation.h"
#include "cli/machine.h"
#include "config/settings.h"

namespace cuslice::cli {

/// One line for each GPU that the program will see and on which the group of these settings lives under another limit
/// than they say. Nothing where there is no such group, or no limit is said.
void warn_group_limit(const Environment& environment, const Settings& settings, const Installation& installation,
                      Machine& machine);

}  // namespace cuslice::cli
