#include "config/fraction.h"

namespace cuslice {
namespace {

constexpr std::string_view kForm = "a fraction is a number above 0 and at most 1, as 0.4, or a percentage, as 40%";

bool refuse(std::string_view reason, Reason& why) {
    why.assign(reason);
    return false;
}

}  // namespace

bool parse_fraction(std::string_view text, Fraction& fraction, Reason& why) {
    if (text.empty()) return refuse("empty: a fraction is needed, as 0.4", why);
    if (text[0] == '-') return refuse("a fraction is not negative: above 0 and at most 1", why);
    const bool percent = text[text.size() - 1] == '%';
    const std::string_view number = percent ? slice(text, 0, text.size() - 1) : text;

    // Counted in parts of 10^9, so one percent is a step of 10^7 and its decimals begin two places further down.
    const std::uint64_t one = percent ? Fraction::kWhole / 100 : Fraction::kWhole;
    std::size_t at = 0;
    std::uint64_t whole = 0;
    for (; at < number.size() && is_digit(number[at]); ++at) {
        // Beyond this it is too much whatever follows; the count stays where it cannot overflow.
        if (whole < Fraction::kWhole) whole = whole * 10 + static_cast<std::uint64_t>(number[at] - '0');
    }
    const std::size_t whole_digits = at;
    std::uint64_t parts = whole * one;
    bool something_dropped = false;
    if (at < number.size() && number[at] == '.') {
        const std::size_t point = at++;
        for (std::uint64_t step = one / 10; at < number.size() && is_digit(number[at]); ++at, step /= 10) {
            parts += static_cast<std::uint64_t>(number[at] - '0') * step;
            something_dropped = something_dropped || (step == 0 && number[at] != '0');
        }
        const bool no_digit = at == point + 1;
        if (no_digit && whole_digits != 0) return refuse("a digit is needed after the point, as 0.4", why);
        if (no_digit) return refuse(kForm, why);
    }
    if (at == 0 || at != number.size()) return refuse(kForm, why);
    if (whole >= Fraction::kWhole || parts > Fraction::kWhole || (parts == Fraction::kWhole && something_dropped)) {
        why.assign("more than the whole GPU: cuslice does not extend a GPU into host memory; at most ");
        why.append(percent ? "100%" : "1");
        const bool looks_like_percent = !percent && whole <= 100 && number.find('.') == number.npos;
        if (looks_like_percent) why.append("; did you mean ").append(number).append("%");
        return false;
    }
    // Not the same mistake: a zero that was written, and a number that is lost in rounding.
    if (parts == 0) {
        return refuse(
            something_dropped ? "too small: at least 0.000000001" : "0 leaves no memory: above 0 and at most 1", why);
    }
    fraction = Fraction(parts);
    return true;
}

}  // namespace cuslice
