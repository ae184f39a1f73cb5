// SPDX-License-Identifier: Apache-2.0
// Patterns over paths, as the rules have them.
#pragma once

#include <cstddef>
#include <string_view>

namespace cuslice::rules {

/// The longest pattern.
inline constexpr size_t kMostOfPattern = 512;

/// True if the whole of `path` fits `pattern`: `*` stands for any characters of one component, `?` for one of them,
/// `**` for any characters, also of several components. Every other character stands for itself. A pattern that is
/// longer than kMostOfPattern fits nothing. Takes time in proportion to the product of both lengths. Pure.
bool fits_glob(std::string_view pattern, std::string_view path);

/// The outermost of `path` and the folders above it that fits; empty if none does. `path` begins with a slash.
std::string_view outermost_fit(std::string_view pattern, std::string_view path);

}  // namespace cuslice::rules
