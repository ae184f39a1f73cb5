// What is said of a program that can't have been meant as it is started: the slice would be somebody else's, or
// nobody's.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "config/settings.h"

namespace cuslice::cli {

/// A line for a program that only asks somebody else to start what uses the GPU (docker, ssh, sbatch, sudo): who has
/// the slice, and what to write instead. `command` is the name of its file. Empty for every other program.
std::string explain_client(const std::string& command);

/// A line for an option of cuslice that stands behind the program, as in `cuslice run ./a.out --limit 1GiB`. Empty
/// unless nothing limits, splits or chooses GPUs: otherwise the option is believed to be the program's own. So it is
/// behind `--`.
std::string explain_misplaced(const Settings& settings, const Arguments& arguments);

}  // namespace cuslice::cli
