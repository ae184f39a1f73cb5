// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where an address lies.

#include "fake/driver/gpu.h"

namespace cuslice::fake {

/// Where an address lies, and what was known of its block when it was looked up: a copy, as other threads may free the
/// block or write to its record at any time. Who changes the record looks it up again, with the GPU's lock held.
struct Found {
    Gpu* gpu = nullptr;
    Region* region = nullptr;
    Address base = 0;
    BlockRecord record;
    explicit operator bool() const { return record.asked != 0; }
};

/// The live block on any GPU that contains the address. Thread-safe.
Found find_block(Address address);

/// The region of this GPU that contains the address, allocated or not; or null.
Region* region_of(Gpu& gpu, Address address);

/// True if the address lies in a range that belongs to a GPU and that the host may not touch, allocated or not.
bool is_device_address(Address address);

}  // namespace cuslice::fake
