// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes on GPUs, by the books and the file of time.

#include <optional>
#include <string>
#include <vector>

#include "fake/books/books.h"
#include "fake/time/reader.h"

namespace cuslice::fake {

/// A process on a GPU.
struct Row {
    std::string uuid, name;
    uint64_t capacity = 0;
    int index = 0;
    Holder holder;
    std::optional<BusyTimes> busy;  // of one whose work takes time
};

/// Everybody in every book of the folder, in the order of GPU and process. What can't be read is said on stderr.
std::vector<Row> read_rows(const std::string& folder);

/// A turn, and the index of its GPU.
struct IndexedTurn {
    int index = 0;
    Turn turn;
};

/// The turns that the machine's timekeeper has kept.
std::vector<IndexedTurn> read_turns(const std::string& folder);

}  // namespace cuslice::fake
