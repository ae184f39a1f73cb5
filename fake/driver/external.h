// SPDX-License-Identifier: Apache-2.0
#pragma once
// Buffers that are mapped onto external memory.

#include "fake/driver/memory_space.h"

namespace cuslice::fake {

/// cuMemFree of such a buffer; false if the address is none.
bool free_external_buffer(Address address);

}  // namespace cuslice::fake
