// SPDX-License-Identifier: Apache-2.0
#pragma once
// One line for people, from whichever of the fake libraries.

#include <string>

namespace cuslice::fake {

/// Appends the line to the file that CUSLICE_FAKE_LOG names, else writes it to stderr. One write, so that lines of
/// several processes and threads don't mix.
void write_line(const std::string& line);

}  // namespace cuslice::fake
