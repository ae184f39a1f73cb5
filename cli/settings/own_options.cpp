// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/own_options.h"

#include <algorithm>
#include <cstddef>

#include "cli/text/table.h"

namespace cuslice::cli {
namespace {

template <typename... Names>
constexpr Commands of(Names... commands) {
    return (bit_of(commands) | ...);
}

constexpr OwnOption kOptions[] = {
    {of(Command::ps), "job", "", "NAME", "print the most that this job has held", OwnNames::jobs},
    {of(Command::set), "job", "", "NAME", "the job, as cuslice ps names it", OwnNames::jobs},
    {of(Command::config), "explain", "", "PID", "print which rule of /etc/cuslice/rules.d holds for this process",
     OwnNames::processes},
    {of(Command::top), "interval", "", "TIME", "from one frame to the next: 500ms, 5s (default: 1s)"},
    {of(Command::top), "once", "", "", "print one frame"},
    {of(Command::demo, Command::doctor, Command::devices, Command::config, Command::ps, Command::stats, Command::top),
     "json", "", "", "print JSON"},
    {of(Command::top), "stream", "", "", "print JSON again and again, each time on one line"},
    {of(Command::ps), "prometheus", "", "", "print gauges for Prometheus"},
    {of(Command::ps), "wide", "", "", "print lines and commands as long as they are"},
    {of(Command::top), "nodes", "", "LIST", "ask these nodes: n1,n2 or gpu[01-04,7]; @slurm: the job's"},
    {of(Command::top), "over", "", "COMMAND",
     "ask a node by this command (default: ssh, for @slurm srun). {} stands for the node, which is else put at the "
     "end. Words end at blanks; no shell reads them"},
    {of(Command::top), "launcher", "", "PATH", "cuslice on the nodes (default: cuslice)"},
    {of(Command::top), "timeout", "", "TIME", "how long to wait for a node's answer (default: 20s)"},
    {of(Command::plot), "output", "o", "OUT", "where the picture goes (default: FILE, with .html as its ending)",
     OwnNames::files},
    {of(Command::plot), "title", "", "TEXT", "the picture's heading (default: the program, or FILE's name)"},
    {of(Command::plot), "open", "", "", "show the page in a browser"},
    {of(Command::cdi), "output", "o", "FILE", "where the specification goes (default: stdout)", OwnNames::files},
    {of(Command::jupyter), "name", "", "NAME", "the kernel's name for programs (default: from the limit)"},
    {of(Command::jupyter), "display-name", "", "TEXT", "its name for people"},
    {of(Command::jupyter), "python", "", "PATH", "the interpreter that has ipykernel (default: python3)",
     OwnNames::files},
    {of(Command::jupyter), "prefix", "", "DIR", "install it for all who have this prefix, and not for you alone",
     OwnNames::files},
    {of(Command::install, Command::uninstall), "system", "", "", "change the machine; without it, nothing is done"},
    {of(Command::install, Command::uninstall), "root", "", "DIR",
     "an image's files, instead of this machine's (default: /)", OwnNames::files},
};

}  // namespace

std::span<const OwnOption> own_options() { return kOptions; }

bool takes_own(Command command, std::string_view name) {
    return std::ranges::any_of(kOptions, [&](const OwnOption& own) { return own.is_of(command) && own.name == name; });
}

std::string written_option(const OwnOption& option) {
    const std::string value = option.placeholder.empty() ? "" : " " + std::string(option.placeholder);
    const std::string letter = option.letter.empty() ? "" : "-" + std::string(option.letter) + value + ", ";
    return letter + "--" + std::string(option.name) + value;
}

std::string own_options_text(Command command) {
    constexpr size_t kIndent = 2, kGap = 3;
    size_t widest = 0;
    for (const OwnOption& own : kOptions)
        if (own.is_of(command))
            widest = std::max(widest, written_option(own).size());
    std::string text;
    for (const OwnOption& own : kOptions) {
        if (!own.is_of(command))
            continue;
        const std::string name = written_option(own);
        text += wrap(own.help, kIndent + widest + kGap).replace(kIndent, name.size(), name);
    }
    return text.empty() ? text : "\nOptions:\n" + text;
}

}  // namespace cuslice::cli
