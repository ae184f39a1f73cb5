// SPDX-License-Identifier: Apache-2.0
#pragma once
// Identity of a board beside UUID and PCI address.

#include <string>

#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// The board's serial number, derived from the UUID; empty where boards have none.
std::string serial_of(const GpuSpec& spec);

}  // namespace cuslice::fake
