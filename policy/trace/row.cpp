#include "policy/trace/row.h"

namespace cuslice::trace {

namespace {

void append_padded(RowText& text, std::uint64_t number, unsigned digits) {
    for (std::uint64_t least = 10; digits > 1; digits--, least *= 10)
        if (number < least) text.append('0');
    text.append_number(number);
}

void append_hexadecimal(RowText& text, std::uint64_t number) {
    unsigned shift = 60;
    while (shift != 0 && number >> shift == 0) shift -= 4;
    text.append("0x");
    for (;; shift -= 4) {
        text.append("0123456789abcdef"[number >> shift & 15]);
        if (shift == 0) return;
    }
}

// Counted here and not by the C library: its local time takes a lock and allocates.
void append_time_of_day(RowText& text, std::uint64_t microseconds) {
    constexpr std::uint64_t kSecond = 1'000'000;
    const std::uint64_t seconds = microseconds / kSecond;
    append_padded(text, seconds / 3600 % 24, 2);
    append_padded(text.append(':'), seconds / 60 % 60, 2);
    append_padded(text.append(':'), seconds % 60, 2);
    append_padded(text.append('.'), microseconds % kSecond, 6);
}

void append_known(RowText& text, std::uint64_t number) {
    if (number != Row::kNotKnown) text.append_number(number);
}

}  // namespace

void append_row(RowText& text, const Row& row) {
    constexpr std::string_view kActions[] = {",allocate,", ",free,", ",allocate failure,"};
    text.append_number(row.thread).append(',');
    append_time_of_day(text, row.time);
    text.append(kActions[static_cast<std::size_t>(row.action)]);
    append_hexadecimal(text, row.address);
    text.append(',').append_number(row.bytes).append(',');
    append_hexadecimal(text, row.stream);
    text.append(',').append(row.gpu).append(',');
    append_known(text, row.limit);
    text.append(',');
    append_known(text, row.held);
    text.append('\n');
}

}  // namespace cuslice::trace
