// SPDX-License-Identifier: Apache-2.0
// One refused setting, and the one line that says so.
#pragma once

#include <string_view>

#include "config/text.h"

namespace cuslice {

/// Where a refused value came from, what it was, and what would be right.
struct ConfigError {
    /// "--limit", "CUSLICE_LIMIT", or a file's path.
    FixedText<1024> source;
    /// In a file, from 1; 0: not in a file.
    unsigned line = 0;
    unsigned column = 0;
    /// The key within a file, as "gpu.0.limit"; empty where the source already names it.
    FixedText<160> key;
    /// The value as written; shown only if `has_value`.
    FixedText<160> value;
    bool has_value = false;
    Reason reason;

    /// Sets everything but the position and the key. Returns false, so that a parser can `return error.set(…)`.
    bool set(std::string_view from, std::string_view written, std::string_view why);
    /// The same without a value.
    bool set(std::string_view from, std::string_view why);
};

using ErrorLine = FixedText<2048>;

/// The whole line, without its newline: `cuslice: SOURCE[:LINE:COLUMN]: [KEY: ][VALUE: ]REASON`. An empty value is
/// shown as "", bytes that could not be seen, or would change how the line is shown, as \xNN (printable.h).
ErrorLine line_of(const ConfigError& error);

}  // namespace cuslice
