// SPDX-License-Identifier: Apache-2.0
// The library in the place of HAMi-core's libvgpu.so: whoever put it there counts on what that library does.
#pragma once

#include "config/settings.h"

namespace cuslice {

/// The name of HAMi-core's library. cuslice's, under this name, is its drop-in.
inline constexpr std::string_view kDropInName = "libvgpu.so";

/// After load_in_program, for a drop-in: the weakest settings. All processes of a container share its limits, unless
/// the settings name a group, want a limit for each process, or have +context; and LIBCUDA_LOG_LEVEL chooses `log`.
bool load_drop_in(Settings& settings, const char* const* environment, ConfigError& error);

}  // namespace cuslice
