// SPDX-License-Identifier: Apache-2.0
// Cells that the tables of holders and of waiting processes share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/text/table.h"

namespace cuslice::cli {

/// The table that a cell is for.
enum class Form : uint8_t {
    line,   // of `cuslice ps`
    whole,  // of `cuslice ps --wide`: commands are whole
    tight,  // of `cuslice top`: sizes take fewer columns
};

/// "12 s", "3 min", "5 h".
std::string age_text(uint64_t seconds);

/// "4096 MiB", and "-" for ledger::kNoLimitBytes.
Cell size_cell(uint64_t bytes, Form form, Tone tone = Tone::plain);
/// The start of a UUID, which is enough to name a GPU by, and a word of a fake one.
Cell gpu_cell(const std::string& uuid);
/// Time since `since`, in nanoseconds of CLOCK_REALTIME.
Cell age_cell(uint64_t since);
/// The command of `words`, or of `name` where there are none. Not escaped.
Cell command_cell(const std::vector<std::string>& words, const std::string& name, Form form);

}  // namespace cuslice::cli
