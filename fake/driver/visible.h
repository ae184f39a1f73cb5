// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.

#include "fake/spec/machine.h"

namespace cuslice::fake {

/// Chooses and orders the GPUs as CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER say. As in NVIDIA's driver, the list ends
/// at the first item that names no GPU or is not of the first one's kind, index or UUID; an item that repeats another
/// leaves no GPU at all, and `repeated` says so: cuInit has an error of its own for that. Of GPUs that MIG divides a
/// process sees one instance: the one that is named by its UUID, else the first; and beside an instance it sees
/// nothing.
MachineSpec visible_gpus(const MachineSpec& machine, const char* visible, const char* order, bool* repeated = nullptr);

}  // namespace cuslice::fake
