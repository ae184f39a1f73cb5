// SPDX-License-Identifier: Apache-2.0
// The options that settings have, as help texts show them: out of the one list of keys.
#pragma once

#include <string>

#include "cli/settings/command.h"
#include "cli/text/json.h"
#include "config/key.h"

namespace cuslice::cli {

/// "--limit SIZE", "--wait[=TIME]": how a help text writes an option.
std::string written_option(const KeyTraits& traits);

/// A command's settings by their names alone, under headings, and where they are explained. Empty if it takes none.
std::string options_in_short(Command command);

/// A command's settings, each under its heading, with its variable, explanation and default. Empty if it takes none.
std::string options_text(Command command);
/// The text of `cuslice help options`: all of them.
std::string options_text();

/// The rows of all settings, for programs.
Json json_of_options();

/// The text of `cuslice help values`: sizes, fractions, names of GPUs, and where settings come from.
std::string_view values_text();

}  // namespace cuslice::cli
