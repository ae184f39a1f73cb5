// SPDX-License-Identifier: Apache-2.0
// A table for people: columns as wide as their widest cell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/text/tone.h"

namespace cuslice::cli {

/// Columns of a terminal whose width isn't known. No line of a help text is longer.
inline constexpr size_t kTerminal = 80;
/// The width of a table that is to be drawn whole.
inline constexpr size_t kUnlimited = SIZE_MAX / 4;

struct Cell {
    std::string text;
    Tone tone = Tone::plain;

    Cell(std::string words, Tone how = Tone::plain) : text(std::move(words)), tone(how) {}
    Cell(const char* words) : text(words) {}
};

/// Numbers stand at the right; a flexible column is cut off before the table becomes several.
enum class Align : uint8_t { left, right, flexible };

struct TableStyle {
    static constexpr size_t kNone = SIZE_MAX;

    /// So many columns at the beginning are repeated where a table becomes several.
    size_t keys = 1;
    size_t width = kTerminal;
    /// A column whose texts are cut off before the table becomes several, and that has what the others leave.
    size_t flexible = kNone;
    /// Columns of numbers, which stand at the right.
    std::vector<size_t> right = {};
    bool colours = false;
    /// A cut shows as "…", otherwise as "~".
    bool utf8 = false;
};

/// Rows of equal length, the first being the headings. Width is counted in columns of a terminal, columns are divided
/// by two spaces, no line ends in spaces. Cells may hold what other users wrote: it is escaped (config/printable.h). A
/// table wider than the style's width becomes several below one another, each beginning with the key columns; a cell
/// that is too wide even so goes on in the next line. Pure.
std::string format_table(const std::vector<std::vector<Cell>>& rows, const TableStyle& style = {});

/// `text` in lines of at most kTerminal columns, each beginning with `indent` spaces and ending in a newline.
std::string wrap(std::string_view text, size_t indent);

/// "4096 MiB", and from 10 GiB on "39.6 GiB": the units of format_size(), for sizes that stand under one another.
std::string format_memory(uint64_t bytes);

}  // namespace cuslice::cli
