// SPDX-License-Identifier: Apache-2.0
// Frameworks' own variables in the environment of a program that is started: told what a slice is, by the values of
// policy/frameworks/variables.h.
#pragma once

#include <vector>

#include "cli/gpus/slice_room.h"
#include "cli/launch/environment.h"
#include "config/settings.h"

namespace cuslice::cli {

/// True if tell_frameworks() may do anything that depends on the GPUs. Then, and only then, it is worth asking which
/// GPUs there are.
bool wants_reserve_variables(const Environment& environment, const Settings& settings);

/// Sets every variable of framework_variables() that the settings call for, and kFrameworkRecord beside them. `rooms`:
/// the slices that the program sees; none where nobody knows. A value of the user's stays; one that cuslice has set
/// further out is replaced, or taken out where these settings don't call for it. Doing it twice changes nothing more.
void tell_frameworks(Environment& environment, const Settings& settings, const std::vector<SliceRoom>& rooms);

}  // namespace cuslice::cli
