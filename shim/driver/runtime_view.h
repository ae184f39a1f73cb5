// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// Functions for NVIDIA's runtime where GPUs are split. The runtime is shown the physical GPUs: their count, ordinals,
// UUIDs, PCI ids and contexts are the driver's own (docs/boundaries.md says why). Memory is counted all the same, on
// the partition that the thread is on, or partition 0.

// True if the code at `caller` is an instance of NVIDIA's runtime: libcudart, or a library or program that has one
// inside. `name` and `version`: the function it asks for now. Its first request, which nobody else makes, gives it
// away.
bool is_runtime(const void* caller, const char* name, int version);

// The function that the runtime gets in place of `hook`, which stands before the driver's `real` for everybody else.
void* runtime_form(const void* real, void* hook);

// After a reset of a partition by the runtime, which begins its context again by its next use. Returns `result`.
CUresult reset_by_runtime(int part, CUresult result);

}  // namespace cuslice
