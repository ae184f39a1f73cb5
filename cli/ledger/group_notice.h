// SPDX-License-Identifier: Apache-2.0
// The lines for a program that names a group: its limit from now on is another program's choice where that one came
// first.
#pragma once

#include "cli/gpus/machine.h"
#include "cli/launch/environment.h"
#include "config/settings.h"

namespace cuslice::cli {

/// Nothing where the settings name no group, or where the group has the limit that they say. Else a line for each GPU
/// that the program will see and that has the group, a line for those that don't have it yet where nobody has said a
/// limit, and a line for a group that is nowhere, if it has no limit or nearly the name of another one.
void tell_group(const Environment& environment, const Settings& settings, Machine& machine);

}  // namespace cuslice::cli
