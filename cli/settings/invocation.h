// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "cli/launch/environment.h"
#include "cli/settings/arguments.h"

namespace cuslice::cli {

/// Input of all commands.
struct Invocation {
    Arguments arguments;
    Environment environment;
    /// The system's file of settings.
    const char* system_file;
    /// Prefix of the paths of the machine's own files that doctor reads; empty except in tests.
    std::string system_root;
};

}  // namespace cuslice::cli
