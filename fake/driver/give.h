// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lists as functions give them that have an array and a count: how many there are, or the first of them.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cuslice::fake {

/// Writes the first `room` items, and empty ones behind them, unless `out` is null. How many it gave, or there are.
template <typename Item>
size_t give_first(const std::vector<Item>& items, Item* out, size_t room) {
    if (out == nullptr)
        return items.size();
    const size_t given = std::min(room, items.size());
    std::copy_n(items.begin(), given, out);
    std::fill(out + given, out + room, Item{});
    return given;
}

}  // namespace cuslice::fake
