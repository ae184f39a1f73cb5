// SPDX-License-Identifier: Apache-2.0
// All that the launcher reads before it starts a program.
#pragma once

#include <string>
#include <vector>

#include "cli/gpus/fake_check.h"
#include "cli/launch/environment.h"
#include "cli/launch/installation.h"
#include "cli/settings/arguments.h"
#include "cli/settings/invocation.h"
#include "config/load.h"

namespace cuslice::cli {

/// A file that was looked at.
struct LookedAt {
    Source source;
    std::string path;
    FileState state;
};

/// Where the machine's settings and rules are for this invocation, whose texts they are.
SystemPlaces places_of(const Invocation& invocation);

/// Reads flags, the outer launcher's hand-over, the environment, the file named by --config or CUSLICE_CONFIG,
/// ./cuslice.toml, the user's and the system's file, the system's rules, and other tools' variables. Relative paths of
/// flags and variables are taken from the current folder, here and for good: the program may go elsewhere.
bool load_launcher(Settings& settings, const std::vector<Flag>& flags, const Environment& environment,
                   const SystemPlaces& system, std::vector<LookedAt>& files, ConfigError& error);
/// The same for a command, which need not know what was looked at.
bool load_launcher(Settings& settings, const Invocation& invocation, ConfigError& error);

/// All that a program's start needs, and that `devices` and `config` show.
struct Launch {
    Settings settings;
    Installation installation;
    std::vector<LookedAt> files;
    ContextSizes contexts;  // of the fake GPUs
};

/// Loads the settings, finds the installation, and checks what can be known before a program starts: the driver's file
/// is there, the fake GPUs exist, the log can be written.
bool load_launch(Launch& launch, const Invocation& invocation, ConfigError& error);

/// The folder with the host's ledgers and figures.
std::string sharing_folder(const Settings& settings, const Environment& environment);

}  // namespace cuslice::cli
