// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looks up an address: in the GPUs' memory, in the host's, and among the mappings.

#include <optional>

#include "fake/driver/context.h"

namespace cuslice::fake {

/// Everything that the attributes are read from.
struct KnownMemory {
    Address address = 0, base = 0;
    size_t size = 0;
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    CUcontext context = nullptr;
    CUmemoryPool pool = nullptr;
    int ordinal = 0;
    unsigned long long id = 0;
    bool managed = false, sync = false, host_visible = false, device_block = false;
};
/// Nothing if no program may use the address.
std::optional<KnownMemory> what_is(Address address);

}  // namespace cuslice::fake
