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
        columns += span.bar || span.spark ? span.columns : columns_of(span.text);
    return columns;
}

std::string clipped(std::string_view text, size_t columns, const Look& look) {
    return cli::clipped(text, columns, look.utf8);
}

Line clipped(const Line& line, const Look& look) {
    Line kept;
    size_t left = look.width;
    for (const Span& span : line) {
        if (span.bar || span.spark) {
            Span narrow = span;
            narrow.columns = std::min(span.columns, left);
            left -= narrow.columns;
            if (narrow.columns != 0)
                kept.push_back(std::move(narrow));
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

void append_bar(Line& line, const Bar& bar, size_t columns) { line.push_back({{}, Tone::plain, bar, {}, columns}); }
void append_spark(Line& line, const Spark& spark, size_t columns) {
    line.push_back({{}, Tone::plain, {}, spark, columns});
}

Line ends(Span left, const std::string& right, const Look& look) {
    const size_t room = columns_of(right) + 2 < look.width ? look.width - columns_of(right) - 2 : look.width;
    left.text = clipped(left.text, room, look);
    const size_t width = columns_of(left.text);
    if (right.empty() || room == look.width)
        return {std::move(left)};
    return {std::move(left), {std::string(look.width - width - columns_of(right), ' ')}, {right, Tone::faint}};
}

Line title(const std::string& text, const std::string& clock, const Look& look) {
    return ends({(look.width < 60 ? "" : "cuslice top: ") + text, Tone::heading}, clock, look);
}

void append_whole(const std::string& text, size_t indent, const Look& look, Lines& lines) {
    const size_t width = std::max(look.width, indent + 1) - indent;
    for (std::string_view rest = text; !rest.empty();) {
        size_t end = 0, columns = 0;
        while (end < rest.size()) {
            const std::string_view one = first_of(rest.substr(end));
            columns += columns_of(one);
            if (columns > width && end != 0)
                break;
            end += one.size();
        }
        // Between two words, where there are some.
        if (const size_t blank = rest.substr(0, end).rfind(' '); end < rest.size() && blank != rest.npos)
            end = blank + 1;
        lines.push_back({{std::string(indent, ' ') + std::string(rest.substr(0, end)), Tone::warning}});
        rest.remove_prefix(end);
    }
}

Bar bar_of(uint64_t used, uint64_t beyond, uint64_t most) {
    const bool nearly = static_cast<double>(used) >= 0.9 * static_cast<double>(most);
    return {used, beyond, most, nearly ? Tone::nearly_full : Tone::used};
}

std::string memory_text(uint64_t bytes) {
    std::string text = format_memory(bytes);
    text.erase(text.find(' '), 1);
    return text;
}

}  // namespace cuslice::cli::top
