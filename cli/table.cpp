#include "cli/table.h"

#include <algorithm>

#include "config/printable.h"

namespace cuslice::cli {
namespace {

// Characters, not columns of a terminal: nothing here is wide.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string format_mib(std::uint64_t bytes) {
    constexpr std::uint64_t kMiB = 1 << 20;
    return std::to_string(bytes / kMiB + (bytes % kMiB >= kMiB / 2 ? 1 : 0)) + " MiB";
}

std::string format_table(std::vector<std::vector<std::string>> rows) {
    for (auto& row : rows)
        for (std::string& cell : row) {
            std::string printable;
            cell = append_printable(printable, cell);
        }
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i];
            line.append(widths[i] - width_of(row[i]) + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace cuslice::cli
