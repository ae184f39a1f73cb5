#include "cli/top/frame.h"

#include <algorithm>
#include <cmath>

#include "cli/text/table.h"
#include "config/printable.h"

namespace cuslice::cli::top {
std::string shown(std::string_view text, const Look& look) {
    std::string printable;
    append_printable(printable, text);
    if (look.utf8) return printable;
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

std::size_t columns_of(const Line& line) {
    std::size_t columns = 0;
    for (const Span& span : line) columns += columns_of(span.text);
    return columns;
}

std::string clipped(std::string_view text, std::size_t columns, const Look& look) {
    return cli::clipped(text, columns, look.utf8);
}

Line clipped(const Line& line, const Look& look) {
    Line kept;
    std::size_t left = look.width;
    for (const Span& span : line) {
        const std::string text = clipped(span.text, left, look);
        left -= columns_of(text);
        if (!text.empty()) kept.push_back({text, span.tone});
        if (text != span.text) break;
    }
    return kept;
}

void append_bar(Line& line, const Bar& bar, std::size_t columns, const Look& look) {
    constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    // Length of the bar for `bytes`, in eighths of a column. Something is never drawn as nothing.
    const auto eighths = [&](std::uint64_t bytes) -> std::size_t {
        if (bar.most == 0 || bytes == 0) return 0;
        const double part = static_cast<double>(std::min(bytes, bar.most)) / static_cast<double>(bar.most);
        return std::max<std::size_t>(static_cast<std::size_t>(std::lround(part * static_cast<double>(columns * 8))), 1);
    };
    const std::size_t filled = eighths(bar.used);
    std::size_t drawn = look.utf8 ? filled / 8 : std::max<std::size_t>((filled + 4) / 8, filled != 0 ? 1 : 0);
    std::string solid, shade;
    for (std::size_t i = 0; i < drawn; ++i) solid += look.utf8 ? "█" : "#";
    if (look.utf8 && filled % 8 != 0) {
        solid += kEighths[filled % 8];
        ++drawn;
    }
    const std::size_t end = (eighths(bar.used + bar.reserved) + 4) / 8;
    for (; drawn < end; ++drawn) shade += look.utf8 ? "░" : "-";
    if (!solid.empty()) line.push_back({solid, bar.tone});
    if (!shade.empty()) line.push_back({shade, Tone::reserved});
    if (drawn < columns) line.push_back({std::string(columns - drawn, ' '), Tone::plain});
}

std::string plain_text(const Lines& lines) {
    std::string text;
    for (const Line& line : lines) {
        std::string row;
        for (const Span& span : line) row += span.text;
        row.erase(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    }
    return text;
}

std::string coloured_text(const Lines& lines) {
    std::string text;
    for (const Line& line : lines) {
        for (const Span& span : line) text += coloured(span.text, span.tone, true);
        text += "\n";
    }
    return text;
}

std::string memory_text(std::uint64_t bytes) {
    std::string text = format_memory(bytes);
    text.erase(text.find(' '), 1);
    return text;
}

}  // namespace cuslice::cli::top
