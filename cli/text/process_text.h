// SPDX-License-Identifier: Apache-2.0
// Texts that /proc has of a process.
#pragma once

#include <string>
#include <string_view>

#include "policy/ledger/process_identity.h"

namespace cuslice::cli {

/// The first `most` bytes of a file in the process's folder of /proc, as "cmdline". Empty where /proc doesn't give
/// them: the process has ended, is in another pid namespace, is hidden, is not `owner`'s (a user as this process sees
/// them), or isn't the one that is meant although its pid is the same. Thread-safe.
std::string read_process_text(const ledger::ProcessIdentity& process, unsigned owner, std::string_view file,
                              size_t most);

}  // namespace cuslice::cli
