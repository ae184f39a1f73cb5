// SPDX-License-Identifier: Apache-2.0
// The limit of the job that a launcher is started in, which holds beside the limit of the job that it starts.
#pragma once

#include "config/settings.h"

namespace cuslice {

/// Adds what the job around this launcher may have, as ceilings of Source::outer_job: the amounts that the outer
/// launcher handed on, or, where a scheduler or a person made the job, those that the environment and the files say.
/// Before that, `settings` hold everything of the launcher's own. Nothing is added where the outer launcher made no job
/// of its own (per-process).
bool add_outer_job(Settings& settings, bool handed_on, ConfigError& error);

}  // namespace cuslice
