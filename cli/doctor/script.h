// SPDX-License-Identifier: Apache-2.0
// Start scripts that undo what the launcher has set.
#pragma once

#include <string>
#include <string_view>

namespace cuslice::cli::doctor {

/// The first line of a script that replaces or removes LD_PRELOAD, or empties the environment, with its number before
/// it ("3: export LD_PRELOAD=/x.so"); empty if none does. A line that keeps what is there ("$LD_PRELOAD:/x.so") is
/// none. Only what stands there literally is seen.
std::string line_without_preload(std::string_view script);

}  // namespace cuslice::cli::doctor
