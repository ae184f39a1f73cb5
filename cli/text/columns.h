// SPDX-License-Identifier: Apache-2.0
// Text measured in columns of a terminal. All of it is to have been through append_printable(). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuslice::cli {

/// The first character of `text`, which is not empty.
std::string_view first_of(std::string_view text);
/// How many columns a text takes: some characters take two, and some none.
size_t columns_of(std::string_view text);
/// The beginning of a text, in at most `columns` columns. What was cut off shows as "…", or "~" without UTF-8.
std::string clipped(std::string_view text, size_t columns, bool utf8);

}  // namespace cuslice::cli
