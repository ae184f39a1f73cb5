// SPDX-License-Identifier: Apache-2.0
// Variables for programs that were built with a sanitizer.
#pragma once

#include <string>

#include "cli/launch/environment.h"

namespace cuslice::cli {

/// A program that was built with AddressSanitizer and its shared runtime ends at once if anything is loaded before that
/// runtime, in case it takes the place of malloc. Ours doesn't. So where `program` needs the runtime, ASAN_OPTIONS says
/// verify_asan_link_order=0, unless it says something of it already. The runtime itself isn't preloaded: the program's
/// children would get it, too, and end with a status of its own if they leak.
void add_sanitizer_variables(Environment& environment, const std::string& program);

}  // namespace cuslice::cli
