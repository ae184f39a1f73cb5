// SPDX-License-Identifier: Apache-2.0
// Another share of a GPU's time for a job that is running.
#pragma once

#include <string>

#include "config/settings.h"

namespace cuslice::cli {

/// Sets what `wanted` has of --share and --share-cap, for each GPU of which the job has a share, within the rule that
/// `all` has. Returns the exit code, with everything said.
int set_share(const Settings& wanted, const Settings& all, const std::string& folder, const std::string& job);

}  // namespace cuslice::cli
