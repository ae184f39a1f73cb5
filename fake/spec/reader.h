// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads profiles and users' files: TOML text → GpuSpec, with every error located.

#include <string>

#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// Reads <folder>/<name>.toml. `name` is matched in any case. On failure false and the whole message in `error`; an
/// unknown name lists the known ones.
bool read_profile(const std::string& folder, const std::string& name, GpuSpec& gpu, std::string& error);

/// Reads a user's file with its [[gpu]] tables and appends to `machine`. Identities are not yet filled in where the
/// file doesn't give them (a UUID of zeros, PCI bus 0).
bool read_machine_file(const std::string& folder, const std::string& path, MachineSpec& machine, std::string& error);

/// "a100-40g, a100-80g, …": the profiles in the folder, sorted.
std::string known_profiles(const std::string& folder);

}  // namespace cuslice::fake
