// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cuslice::cli {

/// Removes the stats files of processes that are gone, killed ones included, as far as this user may: called by every
/// command that looks at the sharing folder, since nobody else is there after a `kill -9`. Best effort; reports
/// nothing. Not for a preloaded library: a lease may send its holder a signal.
void remove_dead_stats(const std::string& folder);

}  // namespace cuslice::cli
