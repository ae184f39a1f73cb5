// SPDX-License-Identifier: Apache-2.0
// The job that a program starts: one slice for it and all that it starts, reserved before it runs.
#pragma once

#include <string>

#include "cli/gpus/machine.h"
#include "cli/gpus/selection.h"
#include "cli/launch/environment.h"
#include "config/settings.h"

namespace cuslice::cli {

/// Makes a job for the program named `command`, puts its name into `environment` (CUSLICE_JOB, behind an outer job's),
/// and reserves its slice on the GPUs that `gpus` names, or on the only one that the program will see; on several
/// others the library does so at the first context on each. For `any` it takes the emptiest GPU on which the slice
/// fits, and makes that the one that is listed. Waits for it if the settings say so. 0, or the exit code, with
/// everything said.
int start_job(Environment& environment, const Settings& settings, Machine& machine, Selection& selection,
              const std::string& command);

/// The GPU that `any` means at this moment, if nothing is reserved.
Gpu emptiest(const Environment& environment, const Settings& settings, Machine& machine, const Selection& selection);

}  // namespace cuslice::cli
