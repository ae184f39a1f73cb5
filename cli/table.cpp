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

using Rows = std::vector<std::vector<std::string>>;

// Some of a table's columns, and how wide each is.
struct Block {
    std::vector<std::size_t> columns, widths;
    std::size_t width = 0;  // with the spaces behind each

    void add(std::size_t column, std::size_t wide) {
        columns.push_back(column);
        widths.push_back(wide);
        width += wide + kGap;
    }
    static constexpr std::size_t kGap = 2;
};

// What a block leaves to its last column.
std::size_t left_in(const Block& block) { return kTerminal > block.width ? kTerminal - block.width : 0; }

std::vector<Block> divide(const std::vector<std::size_t>& widths, std::size_t keys) {
    // Less is no column to fold a text in.
    constexpr std::size_t kNarrow = 24;
    std::vector<Block> blocks;
    Block start;
    for (std::size_t i = 0; i < keys; ++i)
        start.add(i, std::min(widths[i], (kTerminal - kNarrow) / keys - Block::kGap));
    blocks.push_back(start);
    for (std::size_t i = keys; i < widths.size(); ++i) {
        const bool first = blocks.back().columns.size() == keys;
        const std::size_t left = left_in(blocks.back());
        const bool last = i + 1 == widths.size();
        if (widths[i] > left && !first && !(last && left >= kNarrow)) blocks.push_back(start);
        blocks.back().add(i, std::min(widths[i], left_in(blocks.back())));
    }
    return blocks;
}

// Takes up to `width` characters off the front of `text`.
std::string take(std::string& text, std::size_t width) {
    std::size_t end = 0;
    for (std::size_t count = 0; end < text.size(); ++end) {
        const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
        if (begins && count++ == width) break;
    }
    std::string taken = text.substr(0, end);
    text.erase(0, end);
    return taken;
}

// A row in as many lines as its longest cell needs.
void append_row(const Block& block, std::vector<std::string> row, std::string& text) {
    for (bool more = true; more;) {
        more = false;
        std::string line;
        for (std::size_t i = 0; i < block.columns.size(); ++i) {
            std::string& cell = row[block.columns[i]];
            const std::string part = take(cell, block.widths[i]);
            line += part;
            line.append(block.widths[i] - width_of(part) + Block::kGap, ' ');
            more = more || !cell.empty();
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
}

}  // namespace

std::string format_mib(std::uint64_t bytes) {
    constexpr std::uint64_t kMiB = 1 << 20;
    return std::to_string(bytes / kMiB + (bytes % kMiB >= kMiB / 2 ? 1 : 0)) + " MiB";
}

std::string format_table(Rows rows, std::size_t keys) {
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
    for (const Block& block : divide(widths, std::min(keys, widths.size()))) {
        if (!text.empty()) text += "\n";
        for (const auto& row : rows) append_row(block, row, text);
    }
    return text;
}

std::string wrap(std::string_view text, std::size_t indent) {
    std::string lines, line;
    const auto end_line = [&] {
        lines.append(indent, ' ').append(line).append("\n");
        line.clear();
    };
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string word(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!line.empty() && indent + width_of(line) + 1 + width_of(word) > kTerminal) end_line();
        if (!line.empty()) line += ' ';
        line += word;
    }
    if (!line.empty()) end_line();
    return lines;
}

}  // namespace cuslice::cli
