// SPDX-License-Identifier: Apache-2.0
// Options of commands that are no settings.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cli/settings/command.h"

namespace cuslice::cli {

/// Commands as bits.
using Commands = uint32_t;
constexpr Commands bit_of(Command command) { return Commands{1} << static_cast<unsigned>(command); }

/// Kinds of names that a shell completes an option's value with.
enum class OwnNames : uint8_t { none, files, jobs, processes };

/// An option, whole, but for how arguments.cpp parses it: help, the manual and completion read its row.
struct OwnOption {
    Commands commands;
    /// "output" of --output, and "o" where -o means the same.
    std::string_view name, letter;
    /// Stands for the value; empty if it takes none.
    std::string_view placeholder;
    std::string_view help;
    OwnNames names = OwnNames::none;

    bool is_of(Command command) const { return (commands & bit_of(command)) != 0; }
};

/// In the order of help texts.
std::span<const OwnOption> own_options();
bool takes_own(Command command, std::string_view name);

/// "-o FILE, --output FILE": how a help text writes an option.
std::string written_option(const OwnOption& option);
/// A command's own options, a line or more each.
std::string own_options_text(Command command);

}  // namespace cuslice::cli
