// SPDX-License-Identifier: Apache-2.0
// Parts of a frame of `cuslice top`: lines of texts in tones and of bars, measured in columns. How they are drawn is a
// canvas's (cli/top/canvas.h). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/text/columns.h"
#include "cli/text/tone.h"

namespace cuslice::cli::top {

using cli::clipped;
using cli::columns_of;
using cli::first_of;
using cli::Tone;

/// Bytes as a part of others.
struct Bar {
    uint64_t used = 0, reserved = 0, most = 0;  // reserved: beyond what is used
    Tone tone = Tone::used;
};

/// Values from 0 to 1 as a line of small columns, the last value at the right end.
struct Spark {
    std::vector<double> values;
    Tone tone = Tone::used;
};

/// A text, or a bar or a spark-line that is so many columns wide.
struct Span {
    std::string text;
    Tone tone = Tone::plain;
    std::optional<Bar> bar = {};
    std::optional<Spark> spark = {};
    size_t columns = 0;
};
using Line = std::vector<Span>;
using Lines = std::vector<Line>;

/// Properties of the terminal to draw on.
struct Look {
    size_t width = 80;
    /// The locale's characters are UTF-8; otherwise all that is drawn is ASCII.
    bool utf8 = true;
};

/// Text that others wrote, escaped so that it does nothing to a terminal (config/printable.h); without UTF-8, all but
/// ASCII is escaped too.
std::string shown(std::string_view text, const Look& look);
size_t columns_of(const Line& line);
/// The beginning of such a text, in at most `columns` columns.
std::string clipped(std::string_view text, size_t columns, const Look& look);
/// A line that is cut off at the width of `look`.
Line clipped(const Line& line, const Look& look);

/// Adds a bar, or a spark-line, of exactly `columns` columns.
void append_bar(Line& line, const Bar& bar, size_t columns);
void append_spark(Line& line, const Spark& spark, size_t columns);

/// A line with text at both ends; the left one gives way.
Line ends(Span left, const std::string& right, const Look& look);
/// The first line of a frame.
Line title(const std::string& text, const std::string& clock, const Look& look);
/// Adds a text of its own words, which goes on in the next line where it is wider than the terminal.
void append_whole(const std::string& text, size_t indent, const Look& look, Lines& lines);
/// A bar of what is limited to `most`: yellow from 90 % on.
Bar bar_of(uint64_t used, uint64_t beyond, uint64_t most);

/// "4096MiB", "39.6GiB": format_memory() in fewer columns.
std::string memory_text(uint64_t bytes);

}  // namespace cuslice::cli::top
