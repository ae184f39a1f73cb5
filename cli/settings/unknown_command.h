// SPDX-License-Identifier: Apache-2.0
// Messages about a word that is no command.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/environment.h"

namespace cuslice::cli {

/// "there are run, devices, … and version; cuslice --help explains them"
std::string list_commands();

/// Says that the first of `words` is no command, and what was probably meant: a command that is spelled nearly so or
/// has another name elsewhere, an option of `run`, or a program that is to be run.
std::string explain_unknown_command(const std::vector<std::string>& words, const Environment& environment);

/// Says that `word`, -v or -gpus, is no option, and which one was probably meant.
std::string explain_short_option(const std::string& word);

/// The option that `word` is but for the dash in front, which text processors make of two hyphens; empty if it is none.
std::string option_with_dash(const std::string& word);

}  // namespace cuslice::cli
