// SPDX-License-Identifier: Apache-2.0
#include "cli/top/canvas.h"

#include <algorithm>
#include <cmath>

namespace cuslice::cli::top {

void draw(const Line& line, Canvas& canvas) {
    for (const Span& span : line)
        if (span.bar)
            canvas.bar(*span.bar, span.columns);
        else
            canvas.text(span.text, span.tone);
    canvas.end_line();
}

void draw(const Lines& lines, Canvas& canvas) {
    for (const Line& line : lines)
        draw(line, canvas);
}

void CharacterCanvas::bar(const Bar& bar, size_t columns) {
    constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    // Length of the bar for `bytes`, in eighths of a column. Something is never drawn as nothing.
    const auto eighths = [&](uint64_t bytes) -> size_t {
        if (bar.most == 0 || bytes == 0)
            return 0;
        const double part = static_cast<double>(std::min(bytes, bar.most)) / static_cast<double>(bar.most);
        return std::max<size_t>(static_cast<size_t>(std::lround(part * static_cast<double>(columns * 8))), 1);
    };
    const size_t filled = eighths(bar.used);
    size_t drawn = utf8_ ? filled / 8 : std::max<size_t>((filled + 4) / 8, filled != 0 ? 1 : 0);
    std::string solid, shade;
    for (size_t i = 0; i < drawn; ++i)
        solid += utf8_ ? "█" : "#";
    if (utf8_ && filled % 8 != 0) {
        solid += kEighths[filled % 8];
        ++drawn;
    }
    const size_t end = (eighths(bar.used + bar.reserved) + 4) / 8;
    for (; drawn < end; ++drawn)
        shade += utf8_ ? "░" : "-";
    if (!solid.empty())
        text(solid, bar.tone);
    if (!shade.empty())
        text(shade, Tone::reserved);
    if (drawn < columns)
        text(std::string(columns - drawn, ' '), Tone::plain);
}

void TextCanvas::text(const std::string& text, Tone tone) { line_ += coloured_ ? coloured(text, tone, true) : text; }

void TextCanvas::end_line() {
    if (!coloured_)
        line_.erase(line_.find_last_not_of(' ') + 1);
    text_ += line_ + "\n";
    line_.clear();
}

bool TextCanvas::flush() {
    const bool written = std::fputs(text_.c_str(), stdout) >= 0;
    text_.clear();
    return written;
}

}  // namespace cuslice::cli::top
