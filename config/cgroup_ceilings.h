// SPDX-License-Identifier: Apache-2.0
// Ceilings of the kernel's own: what the device memory controller of cgroup v2 leaves to this process's cgroup.
#pragma once

#include "config/settings.h"
#include "config/system_places.h"

namespace cuslice {

/// Adds what dmem.max of this process's cgroup, and of each cgroup around it, says of a GPU's memory (regions
/// drm/PCI/vram…); of several the smallest. A machine without cgroup v2 at /sys/fs/cgroup costs one failing call, one
/// without that controller one file. What can't be read limits nothing. False with `error` filled if there is no room
/// in `settings`. Not for two threads at once.
bool load_cgroup_ceilings(Settings& settings, const SystemPlaces& system, ConfigError& error);

}  // namespace cuslice
