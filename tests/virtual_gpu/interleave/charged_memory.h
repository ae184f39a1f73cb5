// SPDX-License-Identifier: Apache-2.0
// Memory of a made-up driver's, charged and recorded as hooks do.
#pragma once

#include <cstdint>

#include "policy/budget/allocation_table.h"
#include "tests/virtual_gpu/interleave/made_up_gpu.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice::tests {

/// Memory that the program has from now on, in this thread's context, which is on `gpu`. 0: it is refused.
uint64_t allocate_charged(VirtualGpu& gpu, MadeUpGpu& driver, uint64_t bytes);
/// False if something went wrong.
bool free_charged(VirtualGpu& gpu, MadeUpGpu& driver, uint64_t address);

/// Bytes of all allocations that are recorded.
uint64_t recorded_bytes();
/// Adds an allocation's bytes to the uint64_t at `sum`.
void add_bytes(const Allocation& allocation, void* sum);

}  // namespace cuslice::tests
