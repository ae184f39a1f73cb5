// SPDX-License-Identifier: Apache-2.0
// Command lines of processes, for people who ask who it is. They may hold secrets, and are read with the reader's own
// rights when they are shown: they never go into ledgers, figures, logs or Prometheus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/text/json.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::cli {

/// The words of a process's command line, of which the first 4096 bytes are read. Empty where /proc doesn't give them:
/// the process has ended, is in another pid namespace, is hidden, is not `owner`'s (a user as this process sees them),
/// or isn't the one that is meant although its pid is the same. Thread-safe.
std::vector<std::string> read_command_line(const ledger::ProcessIdentity& process, unsigned owner);

/// The words as a list, null where there are none.
Json json_of_words(const std::vector<std::string>& words);

/// How much of a command line is shown.
enum class CommandDetail {
    whole,    // every word, as it is
    line,     // "python train.py --epochs 3": program and script without their folders
    program,  // "python train.py": what may stand in a message, which may go into a log
};

/// A process's command: of `words`, or, where there are none, `name`, which is what the kernel or a ledger calls it. Of
/// a launcher that waits it is the program `name` that it is to start. Not escaped. Pure.
std::string command_text(const std::vector<std::string>& words, std::string_view name, CommandDetail detail);

}  // namespace cuslice::cli
