// SPDX-License-Identifier: Apache-2.0
#include "cli/top/frame.h"

#include <algorithm>

#include "cli/text/table.h"
#include "config/printable.h"

namespace cuslice::cli::top {
std::string shown(std::string_view text, const Look& look) {
    std::string printable;
    append_printable(printable, text);
    if (look.utf8)
        return printable;
    std::string ascii;
    for (const char c : printable) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80)
            ascii += c;
        else
            ascii.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
    return ascii;
}

size_t columns_of(const Line& line) {
    size_t columns = 0;
    for (const Span& span : line)
        columns += span.bar ? span.columns : columns_of(span.text);
    return columns;
}

std::string clipped(std::string_view text, size_t columns, const Look& look) {
    return cli::clipped(text, columns, look.utf8);
}

Line clipped(const Line& line, const Look& look) {
    Line kept;
    size_t left = look.width;
    for (const Span& span : line) {
        if (span.bar) {
            const size_t columns = std::min(span.columns, left);
            if (columns != 0)
                append_bar(kept, *span.bar, columns);
            left -= columns;
            continue;
        }
        const std::string text = clipped(span.text, left, look);
        left -= columns_of(text);
        if (!text.empty())
            kept.push_back({text, span.tone});
        if (text != span.text)
            break;
    }
    return kept;
}

void append_bar(Line& line, const Bar& bar, size_t columns) { line.push_back({{}, Tone::plain, bar, columns}); }

std::string memory_text(uint64_t bytes) {
    std::string text = format_memory(bytes);
    text.erase(text.find(' '), 1);
    return text;
}

}  // namespace cuslice::cli::top
