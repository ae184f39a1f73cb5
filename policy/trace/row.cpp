// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/row.h"

#include <bit>
#include <cstring>

namespace cuslice::trace {

namespace {

constexpr size_t kMostOfName = 47;

// The text of each number below 100, or of each byte.
template <unsigned Numbers, unsigned Base>
struct Pairs {
    constexpr Pairs() {
        for (unsigned i = 0; i < Numbers; i++) {
            text[2 * i] = "0123456789abcdef"[i / Base];
            text[2 * i + 1] = "0123456789abcdef"[i % Base];
        }
    }
    char text[2 * Numbers] = {};
};
constexpr Pairs<100, 10> kDecimals;
constexpr Pairs<256, 16> kHexadecimals;

void put_pair(char* to, uint64_t number) { std::memcpy(to, kDecimals.text + 2 * number, 2); }

unsigned digits_of(uint64_t number) {
    static constexpr uint64_t kPowers[] = {0,
                                           10,
                                           100,
                                           1'000,
                                           10'000,
                                           100'000,
                                           1'000'000,
                                           10'000'000,
                                           100'000'000,
                                           1'000'000'000,
                                           10'000'000'000,
                                           100'000'000'000,
                                           1'000'000'000'000,
                                           10'000'000'000'000,
                                           100'000'000'000'000,
                                           1'000'000'000'000'000,
                                           10'000'000'000'000'000,
                                           100'000'000'000'000'000,
                                           1'000'000'000'000'000'000,
                                           10'000'000'000'000'000'000u};
    // 1233 / 4096 is a little less than the decimal logarithm of 2.
    const auto bits = static_cast<unsigned>(std::bit_width(number | 1));
    const unsigned guess = bits * 1233 >> 12;
    return guess + (number >= kPowers[guess] ? 1 : 0);
}

char* put_number(char* to, uint64_t number) {
    char* const end = to + digits_of(number);
    char* at = end;
    for (; number >= 100; number /= 100)
        put_pair(at -= 2, number % 100);
    if (number >= 10)
        put_pair(at - 2, number);
    else
        at[-1] = static_cast<char>('0' + number);
    return end;
}

char* put_hexadecimal(char* to, uint64_t number) {
    *to++ = '0';
    *to++ = 'x';
    const auto digits = (static_cast<unsigned>(std::bit_width(number | 1)) + 3) / 4;
    unsigned shift = digits * 4;
    if (digits % 2 != 0)
        *to++ = kHexadecimals.text[2 * (number >> (shift -= 4) & 15) + 1];
    while (shift != 0) {
        shift -= 8;
        std::memcpy(to, kHexadecimals.text + 2 * (number >> shift & 255), 2);
        to += 2;
    }
    return to;
}

char* put_text(char* to, std::string_view text) {
    if (text.empty())
        return to;  // which may have no address
    std::memcpy(to, text.data(), text.size());
    return to + text.size();
}

// Text that a thread writes again and again.
struct Known {
    uint64_t second = ~0ull, limit = Row::kNotKnown;
    char time_of_day[9] = {};  // "09:12:03."
    char limit_text[21] = {};
    uint8_t limit_size = 0;
};
constinit thread_local Known known;

// Counted here and not by the C library: its local time takes a lock and allocates.
void know_second(Known& now, uint64_t second) {
    put_pair(now.time_of_day, second / 3600 % 24);
    put_pair(now.time_of_day + 3, second / 60 % 60);
    put_pair(now.time_of_day + 6, second % 60);
    now.time_of_day[2] = now.time_of_day[5] = ':';
    now.time_of_day[8] = '.';
    now.second = second;
}

char* put_time_of_day(Known& now, char* to, uint64_t microseconds) {
    constexpr uint64_t kSecond = 1'000'000;
    const uint64_t second = microseconds / kSecond, rest = microseconds % kSecond;
    if (now.second != second)
        know_second(now, second);
    to = put_text(to, {now.time_of_day, sizeof now.time_of_day});
    put_pair(to, rest / 10'000);
    put_pair(to + 2, rest / 100 % 100);
    put_pair(to + 4, rest % 100);
    return to + 6;
}

char* put_limit(Known& now, char* to, uint64_t limit) {
    if (limit == Row::kNotKnown)
        return to;
    if (now.limit != limit) {
        now.limit_size = static_cast<uint8_t>(put_number(now.limit_text, limit) - now.limit_text);
        now.limit = limit;
    }
    return put_text(to, {now.limit_text, now.limit_size});
}

std::string_view cut(std::string_view text, size_t most) { return slice(text, 0, most); }

// As far as the columns that every recording has had.
char* put_columns(char* to, const Row& row) {
    static constexpr std::string_view kActions[] = {",allocate,", ",free,", ",allocate failure,"};
    Known& now = known;
    to = put_number(to, row.thread);
    *to++ = ',';
    to = put_time_of_day(now, to, row.time);
    to = put_text(to, kActions[static_cast<size_t>(row.action)]);
    to = put_hexadecimal(to, row.address);
    *to++ = ',';
    to = put_number(to, row.bytes);
    *to++ = ',';
    to = put_hexadecimal(to, row.stream);
    *to++ = ',';
    to = put_text(to, {row.gpu.data(), row.gpu.size() < kMostOfName ? row.gpu.size() : kMostOfName});
    *to++ = ',';
    to = put_limit(now, to, row.limit);
    *to++ = ',';
    if (row.held != Row::kNotKnown)
        to = put_number(to, row.held);
    *to++ = ',';
    return to;
}

}  // namespace

void write_row(RowText& text, const Row& row, Columns columns) {
    char* to = put_columns(text.bytes, row);
    if (columns == Columns::with_stack)
        *to++ = ',';
    *to++ = '\n';
    text.size = static_cast<size_t>(to - text.bytes);
}

void write_row(LongRowText& text, const Row& row, Columns columns) {
    char* to = put_text(put_columns(text.bytes, row), cut(row.program, kMostOfProgram));
    if (columns == Columns::with_stack) {
        *to++ = ',';
        to = put_text(to, cut(row.stack, kMostOfStack));
    }
    *to++ = '\n';
    text.size = static_cast<size_t>(to - text.bytes);
}

}  // namespace cuslice::trace
