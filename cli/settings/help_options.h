// The options that settings have, as help texts show them: out of the one list of keys.
#pragma once

#include <string>

#include "cli/settings/command.h"
#include "config/key.h"

namespace cuslice::cli {

/// "--limit SIZE", "--wait[=TIME]": how a help text writes an option.
std::string written_option(const KeyTraits& traits);

/// A command's options by their names alone, under headings, and where they are explained.
std::string options_in_short(Command command);

/// The text of `cuslice help options`: each option under its heading, with its variable, explanation and default.
std::string options_text();

/// The text of `cuslice help values`: sizes, fractions, names of GPUs, and where settings come from.
std::string_view values_text();

}  // namespace cuslice::cli
