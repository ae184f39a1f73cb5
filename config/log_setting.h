// SPDX-License-Identifier: Apache-2.0
// The key `log`: how much is said, and where.
#pragma once

#include <cstdint>
#include <string_view>

#include "config/text.h"

namespace cuslice {

enum class LogLevel : uint8_t { warn, info, debug };

/// `file` is empty for stderr; it is not owned.
struct LogSetting {
    LogLevel level = LogLevel::warn;
    std::string_view file;
};

/// Reads `warn`, `info` or `debug`, with `:FILE` after it where wanted. Pure; `log.file` points into `text`.
bool parse_log(std::string_view text, LogSetting& log, Reason& why);

}  // namespace cuslice
