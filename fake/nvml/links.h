// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVLink, as a GPU's profile has it.

#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// How many NVLinks a GPU has; 0 for one without NVLink.
unsigned link_count(const GpuSpec& gpu);

}  // namespace cuslice::fake
