// SPDX-License-Identifier: Apache-2.0
// "+context" behind a size: what the driver takes for contexts and modules comes on top of it.
#pragma once

#include <string_view>

#include "config/text.h"

namespace cuslice {

inline constexpr std::string_view kPlusContext = "+context";

/// True for "1GiB+context". Pure.
constexpr bool has_plus_context(std::string_view text) {
    return text.size() >= kPlusContext.size() && text.substr(text.size() - kPlusContext.size()) == kPlusContext;
}

/// "1GiB" of "1GiB+context"; any other text as it is. Pure.
constexpr std::string_view without_plus_context(std::string_view text) {
    return has_plus_context(text) ? text.substr(0, text.size() - kPlusContext.size()) : text;
}

}  // namespace cuslice
