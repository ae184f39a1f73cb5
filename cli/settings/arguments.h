// SPDX-License-Identifier: Apache-2.0
// The command line: which command, with which settings, for which program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/launch/environment.h"
#include "cli/settings/command.h"
#include "config/config_error.h"
#include "config/key.h"

namespace cuslice::cli {

/// `--limit 4GiB` or `--limit=4GiB`.
struct Flag {
    Key key;
    std::string value;
};

struct Arguments {
    Command command = Command::help;
    /// For help: of which command; help itself for the whole.
    Command topic = Command::help;
    /// For help: "options" or "values", the text that commands share; empty for another text.
    std::string shared_text;
    /// For help: settings are explained as well, and not only named.
    bool help_all = false;
    /// For help: the page of the manual to print as its source, "cuslice" or "cuslice.toml"; empty for a text.
    std::string page;
    /// For completion: the shell, or the kind of names that a shell asks for.
    std::string shell, names;
    std::vector<Flag> flags;
    /// The program and its arguments; for plot, all of its words.
    std::vector<std::string> program;
    /// They stood behind `--`.
    bool dashes = false;
    bool json = false;
    /// For ps: gauges for Prometheus.
    bool prometheus = false;
    /// For ps: lines and commands as long as they are.
    bool wide = false;
    /// For stats: the process; for config: that of --explain, or 0.
    int pid = 0;
    /// For top: one frame, and milliseconds from one to the next.
    bool once = false;
    uint64_t interval = 1000;
    /// For top: JSON again and again.
    bool stream = false;
    /// For top: the list of nodes, empty for this machine; the command that asks them, empty for the usual one; the
    /// launcher's path there, and milliseconds in which an answer has to come.
    std::string nodes, over, launcher = "cuslice";
    uint64_t timeout = 20'000;
    /// For set: the job's name; empty for a group. For ps: whose peaks are asked for; empty: nobody's.
    std::string job;
    /// For cdi: the file to write; empty for stdout.
    std::string output;
    /// For jupyter: the kernel's names, its interpreter, and below which folder it goes; empty for the usual ones.
    std::string name, display_name, python, prefix;
    /// For install and uninstall: the folder of an image; empty for this machine.
    std::string root;
    /// For query: the descriptor to answer on and the question (ask_child.h).
    std::vector<std::string> query;
};

/// True if the command has an option for this key. Commands that show or change what runs already take only the
/// options that say where its ledgers are, and which group or limit is meant.
bool takes(Command command, Key key);

/// 0 if the command line is understood, else the exit code, with `error` filled. Options end at `--` or at the first
/// word that is no option, as with env(1): what follows is the program's own. `environment` has the PATH in which a
/// word that is no command is looked for: it may be a program.
int parse_arguments(const std::vector<std::string>& words, const Environment& environment, Arguments& arguments,
                    ConfigError& error);

}  // namespace cuslice::cli
