// SPDX-License-Identifier: Apache-2.0
// Hints on a program that can't have been meant as it is started: the slice would be somebody else's, or nobody's.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/environment.h"
#include "cli/settings/arguments.h"
#include "config/settings.h"

namespace cuslice::cli {

/// A line for a program that only asks somebody else to start what uses the GPU (docker, ssh, sbatch, sudo), also where
/// `env`, `nohup` and the like stand before it: who has the slice, and what to write instead. `words`: the program and
/// its arguments. Empty for every other program.
std::string explain_client(const std::vector<std::string>& words);

/// A line for a program that starts ranks, which a split GPU has a part for each: what NCCL makes of them. By the name
/// of its file (torchrun, mpirun), or by the module that `words` has Python run. Empty for every other program, and
/// where the environment has told NCCL already.
std::string explain_ranks(const std::string& command, const std::vector<std::string>& words,
                          const Environment& environment);

/// A suggestion to write instead of the program `name`, which isn't there or can't be started (`exit_code` says
/// which): the end of a line, "; did you mean python3". Empty where nothing better is known.
std::string suggest_program(const std::string& name, int exit_code, const Environment& environment);

/// A line for an option of cuslice that stands behind the program, as in `cuslice run ./a.out --limit 1GiB`. Empty
/// unless nothing limits, splits or chooses GPUs: otherwise the option is believed to be the program's own. So it is
/// behind `--`.
std::string explain_misplaced(const Settings& settings, const Arguments& arguments);

}  // namespace cuslice::cli
