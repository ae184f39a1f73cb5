// The job that a program starts: one slice for it and all that it starts, reserved before it runs.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/installation.h"
#include "config/settings.h"

namespace cuslice::cli {

/// Makes a job for the program named `command`, puts its name into `environment` (CUSLICE_JOB, behind an outer job's),
/// and reserves its slice where it will see one GPU only; on several GPUs the library does so at the first context on
/// each. Waits for it if the settings say so. 0, or the exit code, with everything said.
int start_job(Environment& environment, const Settings& settings, const Installation& installation,
              const std::string& command);

}  // namespace cuslice::cli
