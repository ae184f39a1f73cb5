// SPDX-License-Identifier: Apache-2.0
// The group `@container`: all programs of one user that see the same root folder, as those of a container do.
#pragma once

#include "config/group_value.h"
#include "config/settings.h"

namespace cuslice {

/// True if the settings choose `@container`. Its limit, where `group-limit` gives none, is the slice of its programs.
bool shares_container(const Settings& settings);

/// The name of the group's account in the ledger; empty if the settings choose none. That of `@container` has the root
/// folder's device and inode in it, so it takes one system call.
FixedText<64> group_name(const Settings& settings);

}  // namespace cuslice
