// SPDX-License-Identifier: Apache-2.0
#include "config/log_setting.h"

namespace cuslice {

bool parse_log(std::string_view text, LogSetting& log, Reason& why) {
    // The first colon divides: a path may have more of them.
    const size_t colon = text.find(':');
    const std::string_view level = slice(text, 0, colon == text.npos ? text.size() : colon);
    if (level == "warn") {
        log.level = LogLevel::warn;
    } else if (level == "info") {
        log.level = LogLevel::info;
    } else if (level == "debug") {
        log.level = LogLevel::debug;
    } else {
        why.assign(
            "a level is needed: warn, info or debug, with :FILE after it to write there, as info:/tmp/slice.log");
        return false;
    }
    log.file = {};
    if (colon == text.npos)
        return true;
    log.file = slice(text, colon + 1);
    if (!log.file.empty())
        return true;
    why.assign("a file is needed after the colon, as ", level, ":/tmp/slice.log");
    return false;
}

}  // namespace cuslice
