// SPDX-License-Identifier: Apache-2.0
#include "config/config_error.h"

#include "config/printable.h"

namespace cuslice {

bool ConfigError::set(std::string_view from, std::string_view written, std::string_view why) {
    set(from, why);
    value.assign(written);
    has_value = true;
    return false;
}

bool ConfigError::set(std::string_view from, std::string_view why) {
    reason.assign(why);
    source.assign(from);
    value.clear();
    has_value = false;
    return false;
}

ErrorLine line_of(const ConfigError& error) {
    ErrorLine line("cuslice: ");
    append_printable(line, error.source);
    if (error.line != 0)
        line.append(":", error.line, ":", error.column);
    line.append(": ");
    if (!error.key.empty()) {
        append_printable(line, error.key);
        line.append(": ");
    }
    if (error.has_value) {
        if (error.value.empty())
            line.append("\"\"");
        append_printable(line, error.value);
        if (error.value.cut())
            line.append("...");
        line.append(": ");
    }
    append_printable(line, error.reason);
    return line;
}

}  // namespace cuslice
