// SPDX-License-Identifier: Apache-2.0
// Settings that are right one by one and mean nothing together.
#pragma once

#include "config/settings.h"

namespace cuslice {

/// False, with `error` filled: an option or a variable that does nothing without another one, which is missing. In a
/// file it is what holds if the other one is given, and stays. Or two that exclude each other, wherever they are from.
bool check_combination(const Settings& settings, ConfigError& error);

}  // namespace cuslice
