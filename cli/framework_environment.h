// Frameworks that take a pool of the whole GPU in one request: told not to, where memory is to grow.
#pragma once

#include "cli/environment.h"
#include "config/settings.h"

namespace cuslice::cli {

/// no-framework-env: their variables are the program's own business.
bool leaves_frameworks_alone(const Settings& settings);

/// Where some GPU's allocator is growth: TF_FORCE_GPU_ALLOW_GROWTH=true and XLA_PYTHON_CLIENT_PREALLOCATE=false, each
/// unless `environment` has it, with whatever value. No allocator underneath can make a pool smaller again that a
/// framework has asked for in one piece. Nothing with no-framework-env.
void add_framework_variables(Environment& environment, const Settings& settings);

}  // namespace cuslice::cli
