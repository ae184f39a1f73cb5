// SPDX-License-Identifier: Apache-2.0
// Looks at the folder of the ledgers as a program would use it, and leaves nothing there. In a child, since a file
// system that is gone can hang whoever touches it.
#pragma once

#include <string>

#include "cli/doctor/finding.h"
#include "cli/launch/environment.h"
#include "cli/launch/installation.h"

namespace cuslice::cli::doctor {

/// Finds what keeps ledgers from being made in `folder`, in at most 10 s. The finding is ok if nothing does.
Finding ask_about_folder(const Installation& installation, const Environment& environment, const std::string& folder);

/// The child's side.
std::string answer_of_folder(const std::string& folder);

}  // namespace cuslice::cli::doctor
