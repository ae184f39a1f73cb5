// A table for people: columns as wide as their widest cell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cuslice::cli {

/// Columns of a terminal. No line of a table or of a help text is longer.
inline constexpr std::size_t kTerminal = 80;

/// Rows of equal length, the first being the headings. Width is counted in characters of UTF-8, columns are divided by
/// two spaces, no line ends in spaces. Cells may hold what other users wrote: it is escaped (config/printable.h).
/// A table wider than kTerminal becomes several below one another, each beginning with the first `keys` columns; a cell
/// that is too wide even so goes on in the next line.
std::string format_table(std::vector<std::vector<std::string>> rows, std::size_t keys = 1);

/// `text` in lines of at most kTerminal columns, each beginning with `indent` spaces and ending in a newline.
std::string wrap(std::string_view text, std::size_t indent);

/// "4096 MiB": as nvidia-smi has it, so that sizes under one another compare.
std::string format_mib(std::uint64_t bytes);

}  // namespace cuslice::cli
