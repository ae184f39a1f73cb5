// SPDX-License-Identifier: Apache-2.0
// Prepares the environment of the program that the launcher starts.
#pragma once

#include "cli/launch/environment.h"
#include "cli/launch/installation.h"
#include "config/settings.h"

namespace cuslice::cli {

/// The environment for a program: LD_PRELOAD with the library first, CUSLICE_SETTINGS in place of the variables that
/// went into it, for a fake GPU CUSLICE_FAKE, CUSLICE_FAKE_KERNELS, its folder first in LD_LIBRARY_PATH and its
/// runtimes in LD_PRELOAD; and where a static runtime is led to a shared one, the library that does so, and its
/// settings as variables. Frameworks' own variables come later, once the GPUs are known (framework_environment.h).
/// Nothing else is touched, and doing it twice changes nothing more. False if the settings are too many to be handed
/// on.
bool prepare_environment(Environment& environment, const Settings& settings, const Installation& installation,
                         ConfigError& error);

/// With fake GPUs, the folder of the fake's nvidia-smi first in PATH: NVIDIA's own knows nothing of them. Before the
/// program is looked for.
void add_fake_programs(Environment& environment, const Settings& settings, const Installation& installation);

/// LD_PRELOAD without any libcuslice.so and fake runtime: for asking the driver itself.
void remove_preload(Environment& environment);

/// LD_PRELOAD without what ld.so has refused to load into this process: it has said so once.
void remove_refused_preloads(Environment& environment);

}  // namespace cuslice::cli
