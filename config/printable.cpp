#include "config/printable.h"

#include <cstdint>

namespace cuslice {

namespace {

struct Character {
    std::uint32_t code = 0;
    std::size_t length = 0;  // 0: no UTF-8 begins here
};

// As Unicode 15, table 3-7, has it: nothing overlong, no surrogates, nothing past U+10FFFF.
Character first_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
    std::uint32_t code = lead & (0xff >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr std::uint32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kMin[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
    return {code, length};
}

bool is_harmless(std::uint32_t code) {
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;  // C0, DEL, C1
    if (code == 0x061c || code == 0x200e || code == 0x200f) return false;
    return (code < 0x2028 || code > 0x202e) && (code < 0x2066 || code > 0x2069);
}

}  // namespace

std::size_t printable_length(std::string_view text) {
    const Character first = first_of(text);
    return is_harmless(first.code) ? first.length : 0;
}

}  // namespace cuslice
