// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine that CUSLICE_FAKE describes.

#include <string>

#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// Reads "2xa100-40g,1xt4" (any case; "t4" is 1xt4) or the path of a TOML file (it has a '/' or ends in .toml) and
/// gives every GPU its identity. The same text gives the same UUIDs and PCI addresses in every process. At most 64
/// GPUs. On failure false and the whole message, which a person can act on, in `error`.
bool parse_machine(const std::string& spec, const std::string& profile_folder, MachineSpec& machine,
                   std::string& error);

/// The folder of the profiles: "profiles" beside the library that this code is linked into.
std::string profile_folder();

/// parse_machine of the environment variable CUSLICE_FAKE; if it is unset, one line says what to set.
bool machine_from_environment(MachineSpec& machine, std::string& error);

/// The driver of the machine that CUSLICE_FAKE describes, as it was when somebody first asked; the usual one where it
/// isn't set.
const DriverSpec& driver_spec();

}  // namespace cuslice::fake
