// SPDX-License-Identifier: Apache-2.0
// UUIDs and PCI ids of virtual GPUs.
#pragma once

#include <span>

#include "config/gpu_selector.h"
#include "config/split/plan.h"

namespace cuslice {

/// A part's own identity: distinct from every GPU's and every other part's, and the same in every process of every
/// host, as it comes from the GPU's alone and the part's number. The UUID keeps its beginning (GPU- or MIG-) and has
/// the version of a UUID that is made by a rule of its own (8). The PCI id keeps bus, device, function and form, in a
/// domain that no real one is in. A fake GPU's part is one whose UUID says so
/// too. What is not known of the GPU stays empty; `index` is the GPU's. Pure.
GpuIdentity identity_of_part(const GpuIdentity& gpu, unsigned part);
/// A virtual GPU's identity: a part's own, or that of the whole GPU. `gpus` are those that were split. Pure.
GpuIdentity identity_of_virtual(const VirtualPart& part, std::span<const GpuIdentity> gpus);

}  // namespace cuslice
