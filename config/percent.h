// SPDX-License-Identifier: Apache-2.0
// Percents of a GPU's time as people write them: "30%", "0.3".
#pragma once

#include <cstdint>
#include <string_view>

#include "config/text.h"

namespace cuslice {

inline constexpr uint64_t kWholePercent = 100;

/// Reads a whole percent from 1 to 100. A number without the sign is a part of 1, as in a fraction, and needs a point:
/// 30 is refused, since nobody could tell it from a time or a count. Pure; safe from any thread.
bool parse_percent(std::string_view text, uint64_t& percent, Reason& why);

}  // namespace cuslice
