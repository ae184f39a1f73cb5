// Numbers in text. The C library's own readers won't do in the preloaded library: compiled with the headers of glibc
// 2.38 or newer, strtoull and sscanf are called by names that an older C library lacks (__isoc23_strtoull).
#pragma once

#include <cstdint>

namespace cuslice {

/// The value of a digit, in any base up to 16; 16 of anything else.
constexpr unsigned digit_value(char digit) {
    if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
    if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
    if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A') + 10;
    return 16;
}

/// Reads digits as far as they go, behind blanks; without a sign. What doesn't fit into 64 bits is their largest
/// number. `*end` then points behind the digits, to `text` if there are none. Pure.
constexpr std::uint64_t read_number(const char* text, const char** end = nullptr, unsigned base = 10) {
    const char* at = text;
    while (*at == ' ' || *at == '\t' || *at == '\n') at++;
    const char* const first = at;
    constexpr std::uint64_t kMost = ~std::uint64_t{0};
    std::uint64_t number = 0;
    for (unsigned digit = 0; (digit = digit_value(*at)) < base; at++)
        number = number > (kMost - digit) / base ? kMost : number * base + digit;
    if (end) *end = at == first ? text : at;
    return number;
}

/// The same with a minus before it, as the kernel writes differences of time.
constexpr std::int64_t read_signed(const char* text, const char** end = nullptr) {
    const char* at = text;
    while (*at == ' ' || *at == '\t' || *at == '\n') at++;
    const bool negative = *at == '-';
    const auto number = static_cast<std::int64_t>(read_number(negative ? at + 1 : at, end));
    return negative ? -number : number;
}

}  // namespace cuslice
