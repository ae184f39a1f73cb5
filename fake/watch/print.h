// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes what was read to stdout.

#include <vector>

#include "fake/watch/rows.h"

namespace cuslice::fake {

/// A line for each row.
void print_lines(const std::vector<Row>& rows);
void print_json(const std::vector<Row>& rows);
/// As CSV, times in nanoseconds of the machine's clock.
void print_turns(const std::vector<IndexedTurn>& turns);

}  // namespace cuslice::fake
