// SPDX-License-Identifier: Apache-2.0
#include "config/text.h"

#include <algorithm>
#include <numeric>

namespace cuslice {

unsigned edit_distance(std::string_view left, std::string_view right) {
    constexpr size_t kLetters = 48;
    left = slice(left, 0, kLetters);
    right = slice(right, 0, kLetters);
    // Three rows are enough: a swap of neighbours looks two rows back.
    unsigned rows[3][kLetters + 1] = {};
    std::iota(rows[0], rows[0] + right.size() + 1, 0);
    for (size_t i = 1; i <= left.size(); ++i) {
        unsigned* row = rows[i % 3];
        const unsigned* above = rows[(i + 2) % 3];
        const unsigned* two_above = rows[(i + 1) % 3];
        row[0] = static_cast<unsigned>(i);
        for (size_t j = 1; j <= right.size(); ++j) {
            const unsigned change = above[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
            row[j] = std::min(change, std::min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
                row[j] = std::min(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[left.size() % 3][right.size()];
}

}  // namespace cuslice
