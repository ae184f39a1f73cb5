// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace cuslice::cli {

/// Writes a file that all may read: into a new one that then takes the name, so that whoever reads it never finds half
/// of one. 0, or errno.
int write_file(const std::string& path, const std::string& text);

}  // namespace cuslice::cli
