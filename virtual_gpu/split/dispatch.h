// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "virtual_gpu/split/split.h"

namespace cuslice {

// Puts this folder's functions into the driver's table. Once, before anybody calls.
void install_split();

// Sets the GPUs that the program sees: once, after the driver has started and before any of them is used. `physical`
// in the driver's order.
void open_split(std::span<const GpuIdentity> physical, const VirtualParts& parts);

}  // namespace cuslice
