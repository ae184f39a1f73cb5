// SPDX-License-Identifier: Apache-2.0
#include "config/fraction.h"

#include <algorithm>

#include "config/refuse.h"

namespace cuslice {
namespace {

constexpr std::string_view kForm = "a fraction is a number above 0 and at most 1, as 0.4, or a percentage, as 40%";

// A number before its point, where it can't overflow: beyond kWhole it is too much whatever follows.
uint64_t whole_of(std::string_view digits) {
    uint64_t whole = 0;
    for (const char digit : digits)
        whole = std::min(whole * 10 + value_of_digit(digit), Fraction::kWhole + 1);
    return whole;
}

struct Decimals {
    uint64_t parts = 0;
    bool something_dropped = false;  // a digit that stands too far behind the point to count
};

// `one`: the parts that 1 stands for.
Decimals decimals_of(std::string_view digits, uint64_t one) {
    Decimals decimals;
    uint64_t step = one;
    for (const char digit : digits) {
        step /= 10;
        decimals.parts += value_of_digit(digit) * step;
        decimals.something_dropped |= step == 0 && digit != '0';
    }
    return decimals;
}

bool refuse_too_much(std::string_view number, bool percent, uint64_t whole, Reason& why) {
    why.assign("more than the whole GPU: cuslice does not extend a GPU into host memory; at most ");
    why.append(percent ? "100%" : "1");
    const bool looks_like_percent = !percent && whole <= 100 && number.find('.') == number.npos;
    if (looks_like_percent)
        why.append("; did you mean ", number, "%");
    return false;
}

// Not the same mistake: a zero that was written, and a number that is lost in rounding.
bool refuse_zero(bool something_dropped, Reason& why) {
    if (something_dropped)
        return refuse("too small: at least 0.000000001", why);
    return refuse("0 leaves no memory: above 0 and at most 1", why);
}

// Digits, and with a point digits behind it.
struct Written {
    std::string_view whole;
    std::string_view decimals;
};

bool read_digits(std::string_view number, Written& written, Reason& why) {
    written.whole = leading_digits(number);
    const std::string_view behind = slice(number, written.whole.size());
    if (behind.empty())
        return !written.whole.empty() || refuse(kForm, why);
    if (behind[0] != '.')
        return refuse(kForm, why);
    written.decimals = leading_digits(slice(behind, 1));
    if (written.decimals.empty())
        return refuse(written.whole.empty() ? kForm : "a digit is needed after the point, as 0.4", why);
    return written.decimals.size() + 1 == behind.size() || refuse(kForm, why);
}

}  // namespace

bool parse_fraction(std::string_view text, Fraction& fraction, Reason& why) {
    if (text.empty())
        return refuse("empty: a fraction is needed, as 0.4", why);
    if (text[0] == '-')
        return refuse("a fraction is not negative: above 0 and at most 1", why);
    const bool percent = text[text.size() - 1] == '%';
    const std::string_view number = percent ? slice(text, 0, text.size() - 1) : text;
    Written written;
    if (!read_digits(number, written, why))
        return false;

    // Counted in parts of 10^9, so one percent is a step of 10^7 and its decimals begin two places further down.
    const uint64_t one = percent ? Fraction::kWhole / 100 : Fraction::kWhole;
    const uint64_t whole = whole_of(written.whole);
    const Decimals decimals = decimals_of(written.decimals, one);
    const uint64_t parts = whole * one + decimals.parts;
    const bool a_little_more = parts == Fraction::kWhole && decimals.something_dropped;
    if (parts > Fraction::kWhole || a_little_more)
        return refuse_too_much(number, percent, whole, why);
    if (parts == 0)
        return refuse_zero(decimals.something_dropped, why);
    fraction = Fraction(parts);
    return true;
}

}  // namespace cuslice
