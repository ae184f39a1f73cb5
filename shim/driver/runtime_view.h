#pragma once
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// What NVIDIA's runtime is handed where GPUs are split. It is shown the physical GPUs: their count, ordinals, UUIDs,
// PCI ids and contexts are the driver's own (docs/boundaries.md says why). Memory is counted all the same, on the part
// that the thread is on, or part 0.

// Whether the code at `caller` is an instance of NVIDIA's runtime: libcudart, or a library or program that has one
// inside. `name` and `version` are what it asks for now: its first question, which nobody else asks, gives it away.
bool is_runtime(const void* caller, const char* name, int version);

// What it gets in place of `hook`, which stands before the driver's `real` for everybody else.
void* runtime_form(const void* real, void* hook);

}  // namespace cuslice
