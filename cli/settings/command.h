// SPDX-License-Identifier: Apache-2.0
// The launcher's commands.
#pragma once

#include <span>
#include <string_view>

namespace cuslice::cli {

enum class Command {
    help,
    version,
    completion,
    run,
    demo,
    devices,
    config,
    ps,
    top,
    set,
    stats,
    plot,
    cdi,
    jupyter,
    doctor,
    install,
    uninstall,
    query
};

/// A command, as it is written, and what it does in a few words.
struct CommandName {
    std::string_view name;
    Command command;
    std::string_view summary;
};

/// Commands for people: all but query, by which the launcher asks a driver in a process of its own.
std::span<const CommandName> command_names();

/// nullptr if there is no such command. Finds query too.
const CommandName* find_command(std::string_view name);
std::string_view name_of(Command command);

}  // namespace cuslice::cli
