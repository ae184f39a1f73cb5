// SPDX-License-Identifier: Apache-2.0
// Numbers in text. The C library's own readers won't do in the preloaded library: compiled with the headers of glibc
// 2.38 or newer, strtoull and sscanf are called by names that an older C library lacks (__isoc23_strtoull).
#pragma once

#include <cstdint>

namespace cuslice {

/// The value of a digit, in any base up to 16; 16 of anything else.
constexpr unsigned digit_value(char digit) {
    constexpr int kToSmallLetters = 0x20;  // the bit by which they differ from capital ones
    const auto decimal = static_cast<unsigned>(digit - '0');
    if (decimal < 10)
        return decimal;
    const auto letter = static_cast<unsigned>((digit | kToSmallLetters) - 'a');
    return letter < 6 ? letter + 10 : 16;
}

constexpr bool is_blank(char character) { return character == ' ' || character == '\t' || character == '\n'; }

constexpr const char* skip_blanks(const char* text) {
    while (is_blank(*text))
        text++;
    return text;
}

/// `number` with one more digit behind it, or the largest number where that doesn't fit. Pure.
constexpr uint64_t with_digit(uint64_t number, unsigned digit, unsigned base) {
    constexpr uint64_t kMost = ~uint64_t{0};
    const bool fits = number <= (kMost - digit) / base;
    return fits ? number * base + digit : kMost;
}

/// Reads digits as far as they go, behind blanks; without a sign. What doesn't fit into 64 bits is their largest
/// number. `*end` then points behind the digits, to `text` if there are none. Pure.
constexpr uint64_t read_number(const char* text, const char** end = nullptr, unsigned base = 10) {
    const char* const first = skip_blanks(text);
    const char* at = first;
    uint64_t number = 0;
    for (unsigned digit = digit_value(*at); digit < base; digit = digit_value(*at)) {
        number = with_digit(number, digit, base);
        at++;
    }
    if (end)
        *end = at == first ? text : at;
    return number;
}

/// The same with a minus before it, as the kernel writes differences of time.
constexpr int64_t read_signed(const char* text, const char** end = nullptr) {
    const char* const at = skip_blanks(text);
    const bool negative = *at == '-';
    const auto number = static_cast<int64_t>(read_number(negative ? at + 1 : at, end));
    return negative ? -number : number;
}

}  // namespace cuslice
