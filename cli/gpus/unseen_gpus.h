// SPDX-License-Identifier: Apache-2.0
// Settings that name a GPU which the program will not see. CUDA, HAMi and MPS count the visible GPUs, cuslice those of
// the machine: without a word `CUDA_VISIBLE_DEVICES=1 cuslice run --limit 0=1GiB` would leave GPU 1 without a limit.
#pragma once

#include "cli/gpus/machine.h"
#include "cli/gpus/selection.h"
#include "config/config_error.h"

namespace cuslice::cli {

/// Refuses an option or a variable that names such a GPU. Of other tools' variables, which are often set for all GPUs
/// of a machine, and at the level info of files, one line each says it. `environment` is what `selection` was made in.
bool check_seen(const Settings& settings, const Environment& environment, Machine& machine, const Selection& selection,
                ConfigError& error);

/// After `any` has found a GPU: one line if it gets no limit there, although another GPU would have had one.
void warn_unlimited(const Settings& settings, const Gpu& chosen);

}  // namespace cuslice::cli
