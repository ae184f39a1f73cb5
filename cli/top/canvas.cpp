// SPDX-License-Identifier: Apache-2.0
#include "cli/top/canvas.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace cuslice::cli::top {

void draw(const Line& line, Canvas& canvas) {
    for (const Span& span : line)
        if (span.bar)
            canvas.bar(*span.bar, span.columns);
        else if (span.spark)
            canvas.spark(*span.spark, span.columns);
        else
            canvas.text(span.text, span.tone);
    canvas.end_line();
}

void draw(const Lines& lines, Canvas& canvas) {
    for (const Line& line : lines)
        draw(line, canvas);
}

void CharacterCanvas::repeat(const char* character, size_t times, Tone tone) {
    std::string whole;
    for (size_t i = 0; i < times; ++i)
        whole += character;
    if (!whole.empty())
        text(whole, tone);
}

void CharacterCanvas::bar(const Bar& bar, size_t columns) {
    constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (bar.most == 0) {  // no limit: nothing to be a part of
        repeat(" ", columns, Tone::plain);
        return;
    }
    // Length of the bar for `bytes`, in eighths of a column. Something is never drawn as nothing.
    const auto eighths = [&](uint64_t bytes) -> size_t {
        if (bytes == 0)
            return 0;
        const double part = static_cast<double>(std::min(bytes, bar.most)) / static_cast<double>(bar.most);
        return std::max<size_t>(static_cast<size_t>(std::lround(part * static_cast<double>(columns * 8))), 1);
    };
    const size_t filled = eighths(bar.used);
    const size_t rounded = std::max<size_t>((filled + 4) / 8, filled != 0 ? 1 : 0);
    const size_t solid = utf8_ ? filled / 8 : rounded;
    repeat(utf8_ ? "█" : "#", solid, bar.tone);
    size_t drawn = solid;
    if (utf8_ && filled % 8 != 0) {
        text(kEighths[filled % 8], bar.tone);
        ++drawn;
    }
    const size_t end = std::max((eighths(bar.used + bar.reserved) + 4) / 8, drawn);
    repeat(utf8_ ? "▒" : "-", end - drawn, Tone::reserved);
    repeat(utf8_ ? "░" : ".", columns - end, Tone::faint);
}

void CharacterCanvas::spark(const Spark& spark, size_t columns) {
    constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    constexpr const char* kAscii[] = {"_", ".", "-", ":", "=", "+", "*", "#"};
    constexpr size_t kSteps = std::size(kBlocks);
    const size_t shown = std::min(columns, spark.values.size());
    repeat(" ", columns - shown, Tone::plain);
    std::string line;
    for (size_t i = spark.values.size() - shown; i < spark.values.size(); ++i) {
        const auto step = static_cast<size_t>(std::lround(std::clamp(spark.values[i], 0.0, 1.0) * (kSteps - 1)));
        line += utf8_ ? kBlocks[step] : kAscii[step];
    }
    if (!line.empty())
        text(line, spark.tone);
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
