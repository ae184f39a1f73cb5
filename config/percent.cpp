// SPDX-License-Identifier: Apache-2.0
#include "config/percent.h"

#include "config/fraction.h"
#include "config/refuse.h"

namespace cuslice {
namespace {

constexpr std::string_view kForm = "a whole percent from 1% to 100% is needed, as 30% or 0.3";

bool is_percent(std::string_view digits) {
    constexpr size_t kMostDigits = 3;
    if (digits.size() > kMostDigits)
        return false;
    const uint64_t number = decimal_number(digits);
    return number >= 1 && number <= kWholePercent;
}

bool refuse_bare(std::string_view digits, Reason& why) {
    why.assign(kForm);
    if (is_percent(digits))
        why.append("; did you mean ", digits, "%");
    return false;
}

}  // namespace

bool parse_percent(std::string_view text, uint64_t& percent, Reason& why) {
    constexpr uint64_t kParts = Fraction::kWhole / kWholePercent;  // of one percent
    if (are_digits(text))
        return refuse_bare(text, why);
    Fraction fraction;
    Reason unused;
    if (!parse_fraction(text, fraction, unused) || fraction.parts() % kParts != 0)
        return refuse(kForm, why);
    percent = fraction.parts() / kParts;
    return true;
}

}  // namespace cuslice
