// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/top/frame.h"

namespace cuslice::cli::top {

/// A job or a group whose limit its user may change, on one GPU.
struct Target {
    std::string kind, name;  // "job" or "group"
    std::string gpu;         // the UUID
    std::string shown;       // "group lab on GPU 0", escaped
    uint64_t limit = 0;      // bytes, or ledger::kNoLimitBytes
};
/// Gives it another limit, as it is typed, and returns a line that says so or why not, not escaped.
using SetLimit = std::function<Span(const Target& target, const std::string& limit)>;

}  // namespace cuslice::cli::top
