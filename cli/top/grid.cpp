// SPDX-License-Identifier: Apache-2.0
#include "cli/top/grid.h"

#include <algorithm>

namespace cuslice::cli::top {
namespace {

constexpr size_t kGap = 2;
// The last rank of what is shown before texts get all the room that they need.
constexpr unsigned kWanted = 2;

}  // namespace

std::vector<size_t> Grid::widths(size_t width) const {
    std::vector<size_t> natural(columns_.size()), chosen(columns_.size(), 0), order(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
        order[i] = i;
        natural[i] = std::max(columns_of(columns_[i].heading), columns_[i].most);
        for (const auto& row : rows_)
            natural[i] = std::max(natural[i], columns_of(row[i].text));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return columns_[a].rank < columns_[b].rank; });
    size_t taken = 0;
    const auto stretch = [&](size_t i, size_t to) {
        const size_t wanted = to > chosen[i] ? to - chosen[i] : 0;
        const size_t more = taken < width ? std::min(wanted, width - taken) : 0;
        chosen[i] += more;
        taken += more;
    };
    const auto sufficient = [&](size_t i) {
        return columns_[i].enough != 0 ? std::min(columns_[i].enough, natural[i]) : natural[i];
    };
    for (const size_t i : order) {
        // A text that is cut off is worth more than a column that can be done without.
        if (columns_[i].rank > kWanted)
            for (const size_t before : order)
                if (chosen[before] != 0 && columns_[before].most == 0)
                    stretch(before, sufficient(before));
        const size_t least = columns_[i].least != 0 ? std::min(columns_[i].least, natural[i]) : natural[i];
        const size_t gap = taken == 0 ? 0 : kGap;
        if (columns_[i].rank != 0 && taken + gap + least > width)
            break;
        chosen[i] = least;
        taken += gap + least;
    }
    for (const size_t i : order)
        if (chosen[i] != 0)
            stretch(i, natural[i]);
    return chosen;
}

Line Grid::draw_row(const std::vector<Cell>& row, const std::vector<size_t>& widths, const Look& look) const {
    Line line;
    for (size_t i = 0; i < row.size(); ++i) {
        if (widths[i] == 0)
            continue;
        if (!line.empty())
            line.push_back({std::string(kGap, ' ')});
        if (row[i].bar) {
            append_bar(line, *row[i].bar, widths[i]);
            continue;
        }
        const std::string text = clipped(row[i].text, widths[i], look);
        const std::string blanks(widths[i] - columns_of(text), ' ');
        line.push_back({columns_[i].right ? blanks + text : text + blanks, row[i].tone});
    }
    return clipped(line, look);
}

Lines Grid::draw(const Look& look) const {
    const std::vector<size_t> chosen = widths(look.width);
    std::vector<Cell> headings;
    for (const Column& column : columns_)
        headings.push_back({column.heading, Tone::heading});
    Lines lines = {draw_row(headings, chosen, look)};
    for (const auto& row : rows_)
        lines.push_back(draw_row(row, chosen, look));
    return lines;
}

}  // namespace cuslice::cli::top
