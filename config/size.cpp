// SPDX-License-Identifier: Apache-2.0
#include "config/size.h"

#include <limits>

#include "config/refuse.h"

namespace cuslice {
namespace {

struct Unit {
    std::string_view name;
    uint64_t bytes;
};

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = kKiB * 1024;
constexpr uint64_t kGiB = kMiB * 1024;
constexpr uint64_t kTiB = kGiB * 1024;
constexpr uint64_t kKB = 1000;
constexpr uint64_t kMB = kKB * 1000;
constexpr uint64_t kGB = kMB * 1000;
constexpr uint64_t kTB = kGB * 1000;
constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

// In any case: mb and Mb could be megabits elsewhere, but never as a size of memory.
constexpr Unit kUnits[] = {
    {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", kTiB},  // as everything that shows memory means them
    {"Ki", kKiB},  {"Mi", kMiB},  {"Gi", kGiB},  {"Ti", kTiB},   // as Kubernetes writes them
    {"K", kKiB},   {"M", kMiB},   {"G", kGiB},   {"T", kTiB},    // as people and Docker shorten them
    {"KB", kKB},   {"MB", kMB},   {"GB", kGB},   {"TB", kTB},    // as the SI has them
};

constexpr std::string_view kUnitNames =
    "KiB, MiB, GiB or TiB (Ki and K are the same as KiB, and so on; KB, MB, GB, TB are powers of 1000)";
// More decimals than this say nothing about a size in TiB any more; they are refused rather than cut.
constexpr size_t kDecimals = 9;

const Unit* find_unit(std::string_view name) {
    for (const Unit& unit : kUnits) {
        if (equal_ignoring_case(unit.name, name))
            return &unit;
    }
    return nullptr;
}

// A bare number, with the unit that was probably meant. Large ones are bytes, as programs print them.
bool refuse_bare(std::string_view number, uint64_t whole, BareNumber small, Reason& why) {
    // Fewer MiB than these hold no context.
    constexpr uint64_t kFewestMiB = 512;
    why.assign(number, " bytes? did you mean ");
    if (whole < kMiB) {
        why.append(number, small == BareNumber::gib && whole < kFewestMiB ? "GiB" : "MiB");
        return false;
    }
    const bool gib = whole % kGiB == 0;
    why.append(whole / (gib ? kGiB : kMiB), gib ? "GiB" : "MiB");
    return false;
}

bool refuse_unit(std::string_view name, Reason& why) {
    why.assign("'", name, "' is not a unit of size: use ", kUnitNames);
    return false;
}

bool too_large(Reason& why) { return refuse("more bytes than 64 bits can count: at most 16777215TiB", why); }

}  // namespace

bool parse_size(std::string_view text, uint64_t& bytes, Reason& why, BareNumber bare) {
    if (text.empty())
        return refuse("empty: a size is needed, as 4GiB", why);
    if (text.find(' ') != text.npos || text.find('\t') != text.npos)
        return refuse("a size has no spaces in it, as 4GiB", why);
    if (text[0] == '-')
        return refuse("a size is not negative: more than 0, as 4GiB", why);
    size_t at = 0;
    uint64_t whole = 0;
    bool overflow = false;
    while (at < text.size() && is_digit(text[at])) {
        const auto digit = static_cast<uint64_t>(text[at] - '0');
        overflow = overflow || whole > (kMax - digit) / 10;
        whole = whole * 10 + digit;
        ++at;
    }
    // The part after the point is counted apart, in parts of a power of ten: no rounding before the last step.
    const size_t whole_digits = at;
    uint64_t part = 0;
    uint64_t parts = 1;
    size_t decimals = 0;
    if (at < text.size() && text[at] == '.') {
        for (++at; at < text.size() && is_digit(text[at]); ++at, ++decimals) {
            if (decimals >= kDecimals)
                continue;
            part = part * 10 + static_cast<uint64_t>(text[at] - '0');
            parts *= 10;
        }
        if (whole_digits != 0 && decimals == 0)
            return refuse("a digit is needed after the point, as 1.5GiB", why);
    }
    if (whole_digits + decimals == 0)
        return refuse("not a size: a number and its unit are needed, as 4GiB", why);
    if (decimals > kDecimals)
        return refuse("at most 9 digits after the point", why);
    const std::string_view number = slice(text, 0, at);
    const std::string_view name = slice(text, at);
    if (name.empty())
        return overflow ? too_large(why) : refuse_bare(number, whole, bare, why);
    const Unit* unit = find_unit(name);
    if (unit == nullptr)
        return refuse_unit(name, why);
    if (overflow || whole > kMax / unit->bytes)
        return too_large(why);
    const uint64_t base = whole * unit->bytes;
    const uint64_t rest = scale(part, unit->bytes, parts);
    if (base > kMax - rest)
        return too_large(why);
    bytes = base + rest;
    return true;
}

SizeText format_size(uint64_t bytes) {
    SizeText text;
    if (bytes < kKiB)
        return text.append(bytes, " bytes"), text;
    const bool mib = bytes >= kMiB;
    const bool gib = bytes >= 10 * kGiB;
    // Rounded to a tenth, and a tenth that rounds up to ten carries.
    const uint64_t unit = gib ? kGiB : mib ? kMiB : kKiB;
    uint64_t whole = bytes / unit;
    uint64_t tenths = ((bytes % unit) * 10 + unit / 2) / unit;
    if (tenths == 10) {
        tenths = 0;
        ++whole;
    }
    text.append(whole, ".", tenths, gib ? " GiB" : mib ? " MiB" : " KiB");
    return text;
}

}  // namespace cuslice
