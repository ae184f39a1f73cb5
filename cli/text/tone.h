// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace cuslice::cli {

/// The meaning of a piece of text, which a terminal may show by its colour.
enum class Tone : uint8_t { plain, faint, heading, used, nearly_full, reserved, warning };

/// `text` with what makes a terminal show its tone; headings are bold also where there are no `colours`.
std::string coloured(const std::string& text, Tone tone, bool colours);

}  // namespace cuslice::cli
