// SPDX-License-Identifier: Apache-2.0
// Where a program's own search path leads to a driver.
#pragma once

#include <string>

#include "cli/launch/environment.h"

namespace cuslice::cli {

/// Has whoever asks the driver in `environment` find the one that `program` will find: the folders of its RPATH that
/// have a driver come before LD_LIBRARY_PATH, those of its RUNPATH after it. What a library of the program finds by a
/// search path of its own isn't known before it runs.
void search_as(const std::string& program, Environment& environment);

}  // namespace cuslice::cli
