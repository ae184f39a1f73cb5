#include "cli/json.h"

namespace cuslice::cli {
namespace {

// The length of the UTF-8 sequence at the front; 0 if there is none.
std::size_t sequence_length(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (length == 0 || length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
    }
    if (length < 3) return length;
    // Overlong forms, surrogates and what lies past U+10FFFF.
    const auto second = static_cast<unsigned char>(text[1]);
    const bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    return bad ? 0 : length;
}

}  // namespace

std::string json_string(std::string_view text) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string quoted = "\"";
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text[0]);
        const std::size_t length = sequence_length(text);
        if (byte == '"' || byte == '\\') {
            quoted += '\\';
            quoted += text[0];
        } else if (byte < 0x20 || byte == 0x7f) {
            quoted.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
        } else if (length == 0) {
            quoted += "\\ufffd";
        } else {
            quoted.append(text.substr(0, length));
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return quoted + "\"";
}

}  // namespace cuslice::cli
