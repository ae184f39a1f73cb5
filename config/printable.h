// SPDX-License-Identifier: Apache-2.0
// Text of others, such as the names of their processes, where a person reads it in a terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace cuslice {

/// How many bytes at the beginning of `text` may be printed as they are. 0: its first byte has to be escaped, because
/// it is part of a control character, of one that changes the direction of writing (U+061C, U+200E, U+200F, U+202A to
/// U+202E, U+2066 to U+2069), of a separator of lines (U+2028, U+2029), or of no UTF-8. `text` is not empty. Pure.
size_t printable_length(std::string_view text);

/// Appends `text` with `\x1b` in place of each byte that has to be escaped, and `\\` in place of each backslash, so
/// that no two texts look the same.
template <typename Text>
Text& append_printable(Text& to, std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (size_t at = 0; at < text.size();) {
        const std::string_view rest(text.data() + at, text.size() - at);
        const size_t length = printable_length(rest);
        if (length == 0) {
            const auto byte = static_cast<unsigned char>(rest[0]);
            const char escaped[] = {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
            to.append(std::string_view(escaped, sizeof escaped));
        } else if (rest[0] == '\\') {
            to.append(std::string_view("\\\\"));
        } else {
            to.append(std::string_view(rest.data(), length));
        }
        at += length != 0 ? length : 1;
    }
    return to;
}

}  // namespace cuslice
