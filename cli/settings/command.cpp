// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/command.h"

namespace cuslice::cli {
namespace {

// Commands for people first, query last.
constexpr CommandName kCommandNames[] = {
    {"run", Command::run, "run a program in a slice"},
    {"demo", Command::demo, "fill a slice until it is refused, and draw it"},
    {"devices", Command::devices, "list the GPUs that a program would see"},
    {"config", Command::config, "print the settings in effect, and where each came from"},
    {"ps", Command::ps, "list who holds, reserves and waits for GPU memory"},
    {"top", Command::top, "show the GPUs, jobs, caches and the queue, live"},
    {"set", Command::set, "change the limit of a running group or job"},
    {"stats", Command::stats, "show what the caches of a running program hold"},
    {"plot", Command::plot, "draw recordings, as a web page, SVG or PNG"},
    {"cdi", Command::cdi, "describe slices to what runs containers (CDI)"},
    {"jupyter", Command::jupyter, "install a kernel of Jupyter that runs in a slice"},
    {"doctor", Command::doctor, "explain why a program gets no slice"},
    {"install", Command::install, "limit every program of this machine"},
    {"uninstall", Command::uninstall, "undo that"},
    {"completion", Command::completion, "print a completion script: bash, zsh or fish"},
    {"help", Command::help, "explain a command"},
    {"version", Command::version, "print the version"},
    {"query", Command::query, ""}};

}  // namespace

std::span<const CommandName> command_names() { return std::span(kCommandNames).first(std::size(kCommandNames) - 1); }

const CommandName* find_command(std::string_view name) {
    for (const CommandName& command : kCommandNames)
        if (command.name == name)
            return &command;
    return nullptr;
}

std::string_view name_of(Command command) {
    for (const CommandName& one : kCommandNames)
        if (one.command == command)
            return one.name;
    return {};
}

}  // namespace cuslice::cli
