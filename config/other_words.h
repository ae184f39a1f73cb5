// SPDX-License-Identifier: Apache-2.0
// Other tools' names for these settings.
#pragma once

#include <string_view>

namespace cuslice {

/// The setting that goes by `word`, or by a part of it, in other tools: "limit" for max-memory, gpu_mem, CUSLICE_VRAM.
/// Empty if none is known. Pure.
std::string_view setting_called(std::string_view word);

}  // namespace cuslice
