// SPDX-License-Identifier: Apache-2.0
// The text of /etc/ld.so.preload: paths with spaces, colons or new lines between them, and comments from # on.
#pragma once

#include <string>
#include <string_view>

namespace cuslice::cli {

bool lists(std::string_view text, std::string_view path);

/// The text with a line for the path at its end; the same text if it is listed.
std::string with_path(std::string_view text, std::string_view path);

/// The text without the path, and without lines that had nothing else. Comments stay.
std::string without_path(std::string_view text, std::string_view path);

}  // namespace cuslice::cli
