#include "config/config_error.h"

namespace cuslice {
namespace {

// Bytes above 0x7f stay as they are: they are UTF-8, or at worst the terminal's own business.
void append_visible(ErrorLine& line, std::string_view text) {
    constexpr char kHex[] = "0123456789abcdef";
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (byte < 0x20 || byte == 0x7f) {
            line.append("\\x").append(kHex[byte >> 4]).append(kHex[byte & 15]);
        } else {
            line.append(character);
        }
    }
}

}  // namespace

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
    append_visible(line, error.source.view());
    if (error.line != 0) line.append(":").append_number(error.line).append(":").append_number(error.column);
    line.append(": ");
    if (!error.key.empty()) {
        append_visible(line, error.key.view());
        line.append(": ");
    }
    if (error.has_value) {
        if (error.value.empty()) line.append("\"\"");
        append_visible(line, error.value.view());
        if (error.value.cut()) line.append("...");
        line.append(": ");
    }
    append_visible(line, error.reason.view());
    return line;
}

}  // namespace cuslice
