// What is said of a word that is no command.
#pragma once

#include <string>

#include "cli/environment.h"

namespace cuslice::cli {

/// "there are run, devices, … and version; cuslice --help explains them"
std::string list_commands();

/// Says that `word` is no command, and what was probably meant: a command that is spelled nearly so, an option of
/// `run`, or a program that is to be run.
std::string explain_unknown_command(const std::string& word, const Environment& environment);

}  // namespace cuslice::cli
