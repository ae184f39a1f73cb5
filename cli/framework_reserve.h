// Frameworks that keep a reserve of a GPU out of their pool: told what a slice leaves them and their libraries.
#pragma once

#include <vector>

#include "cli/environment.h"
#include "cli/slice_room.h"
#include "config/settings.h"

namespace cuslice::cli {

/// Whether add_reserve_variables() may set anything. Then, and only then, it is worth asking which GPUs there are.
bool wants_reserve_variables(const Environment& environment, const Settings& settings);

/// Where some of `rooms` is limited: TF_DEVICE_MIN_SYS_MEMORY_IN_MB and XLA_PYTHON_CLIENT_MEM_FRACTION, by the same
/// rule. TensorFlow and JAX keep a reserve of a GPU for its context and for libraries, which is taken from a slice once
/// more than it needs; these leave the libraries library_reserve(). Each variable is one for all GPUs of the process:
/// it is right for the slice that has least left.
void add_reserve_variables(Environment& environment, const Settings& settings, const std::vector<SliceRoom>& rooms);

}  // namespace cuslice::cli
