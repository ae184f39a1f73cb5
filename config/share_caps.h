// SPDX-License-Identifier: Apache-2.0
// Caps of shares of a GPU's time.
#pragma once

#include "config/settings.h"

namespace cuslice {

/// False, with `error` filled: a cap that is below its share, or has none.
bool check_share_caps(const Settings& settings, ConfigError& error);

}  // namespace cuslice
