// SPDX-License-Identifier: Apache-2.0
#include "cli/text/columns.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>

#include "config/printable.h"

namespace cuslice::cli {
namespace {

// The character at the beginning of `text`, which is whole.
wchar_t decode(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    if (text.size() == 1)
        return static_cast<wchar_t>(lead);
    unsigned code = lead & (0xffu >> (text.size() + 1));
    for (const char c : text.substr(1))
        code = code << 6 | (static_cast<unsigned char>(c) & 0x3fu);
    return static_cast<wchar_t>(code);
}

// Measures in C.UTF-8 and not in the process's locale: names have the same characters in every locale.
size_t width_of(std::string_view character) {
    static const locale_t kUtf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (character.size() == 1 || kUtf8 == nullptr)
        return 1;
    const locale_t before = ::uselocale(kUtf8);
    const int width = ::wcwidth(decode(character));
    ::uselocale(before);
    return width < 0 ? 1 : static_cast<size_t>(width);
}

}  // namespace

std::string_view first_of(std::string_view text) { return text.substr(0, std::max<size_t>(printable_length(text), 1)); }

size_t columns_of(std::string_view text) {
    size_t columns = 0;
    while (!text.empty()) {
        const std::string_view character = first_of(text);
        columns += width_of(character);
        text.remove_prefix(character.size());
    }
    return columns;
}

std::string clipped(std::string_view text, size_t columns, bool utf8) {
    if (columns_of(text) <= columns)
        return std::string(text);
    if (columns == 0)
        return {};
    std::string kept;
    for (size_t left = columns - 1; !text.empty();) {
        const std::string_view character = first_of(text);
        const size_t width = width_of(character);
        if (width > left)
            break;
        kept += character;
        left -= width;
        text.remove_prefix(character.size());
    }
    return kept + (utf8 ? "…" : "~");
}

}  // namespace cuslice::cli
