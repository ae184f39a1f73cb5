// A table for people: columns as wide as their widest cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuslice::cli {

/// Rows of equal length, the first being the headings. Width is counted in characters of UTF-8, columns are divided by
/// two spaces, no line ends in spaces. Cells may hold what other users wrote: it is escaped (config/printable.h).
std::string format_table(std::vector<std::vector<std::string>> rows);

/// "4096 MiB": as nvidia-smi has it, so that sizes under one another compare.
std::string format_mib(std::uint64_t bytes);

}  // namespace cuslice::cli
