// SPDX-License-Identifier: Apache-2.0
// A table of `cuslice top`, which leaves columns out where the terminal is narrow and stretches some where it is wide.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/top/frame.h"

namespace cuslice::cli::top {

class Grid {
  public:
    struct Column {
        std::string heading;
        /// Where there is no room for all columns, those of the highest numbers are left out. 0: never.
        unsigned rank = 0;
        /// Numbers under one another.
        bool right = false;
        /// Columns of the terminal from which it can be shown cut off, and up to which it grows; 0: neither.
        size_t least = 0, most = 0;
        /// Columns with which a long text does before columns of less worth are left out for it; 0: it needs all.
        size_t enough = 0;
    };
    struct Cell {
        std::string text;
        Tone tone = Tone::plain;
        std::optional<Bar> bar = {};
    };

    explicit Grid(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// As many cells as there are columns. Texts have been through shown().
    void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
    bool empty() const { return rows_.empty(); }
    /// The headings, and a line for each row, none wider than `look`.
    Lines draw(const Look& look) const;

  private:
    /// Each column's width; 0 where it is left out.
    std::vector<size_t> widths(size_t width) const;
    Line draw_row(const std::vector<Cell>& row, const std::vector<size_t>& widths, const Look& look) const;

    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

}  // namespace cuslice::cli::top
