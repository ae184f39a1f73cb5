// SPDX-License-Identifier: Apache-2.0
// Machines of fake GPUs: each has a folder of its own, in which the fake driver notes who holds what
// (CUSLICE_FAKE_DIR).
#pragma once

#include <string>

#include "cli/launch/environment.h"
#include "config/config_error.h"
#include "config/settings.h"

namespace cuslice::cli {

/// Sets CUSLICE_FAKE_DIR in `environment` to the folder of the machine that `fake-machine` asks for, and makes it.
/// Without fake GPUs, or where the machine isn't asked for, nothing is done.
///
/// A machine that is `new` lasts until this process, what it becomes, and all that these start have ended, however they
/// end. A child process of init then removes its folder, or, if that child was killed too, the next launcher that makes
/// one. False, with `error`, if the folder can't be made.
bool enter_fake_machine(Environment& environment, const Settings& settings, ConfigError& error);

/// The folder of the machine that `fake-machine` names; empty where it names none, or a new one.
std::string named_fake_machine(const Settings& settings, const Environment& environment);

}  // namespace cuslice::cli
