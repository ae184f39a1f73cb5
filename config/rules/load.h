// SPDX-License-Identifier: Apache-2.0
// The rules of the system: the files of one folder, and the first rule in them that is for this process.
#pragma once

#include "config/rules/rule.h"
#include "config/settings.h"
#include "config/system_places.h"

namespace cuslice::rules {

/// Reads every *.toml in the folder rules.d beside the system's file, in the order of their names, and adds the
/// ceilings of the first rule that is for this process to `settings`. A missing folder is no error, and costs one
/// failing call. False with `error` filled if a file is wrong, or is not the administrator's alone. Not for two threads
/// at once.
bool load_rules(Settings& settings, const SystemPlaces& system, OpenToml open_toml, ConfigError& error);

/// Called with each rule in order, whose process is asked for, and whether the rule is for it; nullptr behind the one
/// that holds, as no other is asked. False ends the reading, with `error` filled.
using Visit = bool (*)(void* context, const Rule& rule, const Identity& identity, const Match* match,
                       ConfigError& error);

/// Reads the same rules in the same way, and tells what becomes of each for the process of `identity`.
bool visit_rules(const Identity& identity, Visit visit, void* context, const SystemPlaces& system, OpenToml open_toml,
                 ConfigError& error);

}  // namespace cuslice::rules
