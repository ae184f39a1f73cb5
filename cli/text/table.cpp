// SPDX-License-Identifier: Apache-2.0
#include "cli/text/table.h"

#include <algorithm>

#include "cli/text/columns.h"
#include "config/printable.h"
#include "config/size.h"

namespace cuslice::cli {
namespace {

using Rows = std::vector<std::vector<Cell>>;

// Less is no column to fold a text in, nor to cut one off in.
constexpr size_t kNarrow = 24;
constexpr size_t kGap = 2;

// Some of a table's columns, and how wide each is.
struct Block {
    std::vector<size_t> columns, widths;
    size_t width = 0;  // with the spaces behind each

    void add(size_t column, size_t wide) {
        columns.push_back(column);
        widths.push_back(wide);
        width += wide + kGap;
    }
    // Columns left to its last one.
    size_t left(size_t of) const { return of > width ? of - width : 0; }
};

std::vector<Block> divide(const std::vector<size_t>& widths, size_t keys, size_t width) {
    std::vector<Block> blocks;
    Block start;
    const size_t room = width > kNarrow ? width - kNarrow : 1;
    for (size_t i = 0; i < keys; ++i)
        start.add(i, std::min(widths[i], std::max<size_t>(room / keys, kGap + 1) - kGap));
    blocks.push_back(start);
    for (size_t i = keys; i < widths.size(); ++i) {
        const bool first = blocks.back().columns.size() == keys;
        const size_t left = blocks.back().left(width);
        const bool last = i + 1 == widths.size();
        if (widths[i] > left && !first && !(last && left >= kNarrow))
            blocks.push_back(start);
        blocks.back().add(i, std::max<size_t>(std::min(widths[i], blocks.back().left(width)), 1));
    }
    return blocks;
}

const Block& block_of(const std::vector<Block>& blocks, size_t column) {
    return *std::find_if(blocks.begin(), blocks.end(), [column](const Block& block) {
        return std::find(block.columns.begin(), block.columns.end(), column) != block.columns.end();
    });
}

// The flexible column first asks for little, so that the table may stay one. Then it gets what is left in its line, and
// where there are several tables anyway all that the columns before it leave.
std::vector<Block> arrange(std::vector<size_t> widths, const TableStyle& style) {
    const size_t keys = std::min(style.keys, widths.size()), flexible = style.flexible;
    if (flexible >= widths.size())
        return divide(widths, keys, style.width);
    const size_t wanted = widths[flexible];
    widths[flexible] = std::min(wanted, kNarrow);
    const std::vector<Block> blocks = divide(widths, keys, style.width);
    const Block& own = block_of(blocks, flexible);
    size_t taken = 0;
    for (size_t i = 0; i < own.columns.size(); ++i) {
        const bool stays = blocks.size() == 1 ? own.columns[i] != flexible : own.columns[i] < flexible;
        if (stays)
            taken += own.widths[i] + kGap;
    }
    const size_t left = style.width - std::min(style.width, taken);
    widths[flexible] = std::max(widths[flexible], std::min(wanted, left));
    return divide(widths, keys, style.width);
}

// Takes up to `width` columns off the front of `text`, and one character at least.
std::string take(std::string& text, size_t width) {
    size_t end = 0, columns = 0;
    while (end < text.size()) {
        const std::string_view one = first_of(std::string_view(text).substr(end));
        columns += columns_of(one);
        if (columns > width && end != 0)
            break;
        end += one.size();
    }
    std::string taken = text.substr(0, end);
    text.erase(0, end);
    return taken;
}

// A row in as many lines as its longest cell needs.
void append_row(const Block& block, std::vector<Cell> row, const TableStyle& style, std::string& text) {
    for (bool more = true; more;) {
        more = false;
        size_t blanks = 0;
        for (size_t i = 0; i < block.columns.size(); ++i) {
            Cell& cell = row[block.columns[i]];
            const std::string part = take(cell.text, block.widths[i]);
            more = more || !cell.text.empty();
            const size_t wide = columns_of(part), rest = block.widths[i] - std::min(wide, block.widths[i]);
            const bool right = std::count(style.right.begin(), style.right.end(), block.columns[i]) != 0;
            if (right)
                blanks += rest;
            if (!part.empty()) {
                text.append(blanks, ' ').append(style.colours ? coloured(part, cell.tone, true) : part);
                blanks = 0;
            }
            blanks += (right ? 0 : rest) + kGap;
        }
        text += "\n";
    }
}

}  // namespace

std::string format_memory(uint64_t bytes) {
    constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
    if (bytes >= 10 * kGiB)
        return std::string(format_size(bytes));
    return std::to_string(bytes / kMiB + (bytes % kMiB >= kMiB / 2 ? 1 : 0)) + " MiB";
}

std::string format_table(const Rows& table, const TableStyle& style) {
    Rows rows = table;
    for (auto& row : rows)
        for (Cell& cell : row) {
            std::string printable;
            cell.text = append_printable(printable, cell.text);
            if (&row == &rows.front())
                cell.tone = Tone::heading;
        }
    std::vector<size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], columns_of(row[i].text));
    }
    const std::vector<Block> blocks = arrange(widths, style);
    for (const Block& block : blocks)
        for (size_t i = 0; i < block.columns.size(); ++i)
            if (block.columns[i] == style.flexible)
                for (auto& row : rows)
                    row[style.flexible].text = clipped(row[style.flexible].text, block.widths[i], style.utf8);
    std::string text;
    for (const Block& block : blocks) {
        if (!text.empty())
            text += "\n";
        for (const auto& row : rows)
            append_row(block, row, style, text);
    }
    return text;
}

std::string wrap(std::string_view text, size_t indent) {
    std::string lines, line;
    const auto end_line = [&] {
        lines.append(indent, ' ').append(line).append("\n");
        line.clear();
    };
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string word(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!line.empty() && indent + columns_of(line) + 1 + columns_of(word) > kTerminal)
            end_line();
        if (!line.empty())
            line += ' ';
        line += word;
    }
    if (!line.empty())
        end_line();
    return lines;
}

}  // namespace cuslice::cli
