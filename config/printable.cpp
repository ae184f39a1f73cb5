// SPDX-License-Identifier: Apache-2.0
#include "config/printable.h"

#include <cstdint>

namespace cuslice {

namespace {

struct Range {
    uint32_t first;
    uint32_t last;
};

// Characters of one length in UTF-8: their first bytes and their codes.
struct Form {
    Range leads;
    size_t length;
    Range codes;
};

// As Unicode 15, table 3-7, has it: nothing overlong, no surrogates, nothing past U+10FFFF.
constexpr Form kForms[] = {
    {{0x00, 0x7f}, 1, {0x0, 0x7f}},
    {{0xc2, 0xdf}, 2, {0x80, 0x7ff}},
    {{0xe0, 0xef}, 3, {0x800, 0xffff}},
    {{0xf0, 0xf4}, 4, {0x10000, 0x10ffff}},
};
constexpr Range kSurrogates = {0xd800, 0xdfff};

constexpr Range kHarmful[] = {
    {0x00, 0x1f},      // C0
    {0x7f, 0x9f},      // DEL, C1
    {0x061c, 0x061c},  // marks and orders of direction, and separators of lines
    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
};

struct Character {
    uint32_t code = 0;
    size_t length = 0;  // 0: no UTF-8 begins here
};

bool is_within(uint32_t code, const Range& range) { return code >= range.first && code <= range.last; }

const Form* form_of(unsigned char lead) {
    for (const Form& form : kForms)
        if (is_within(lead, form.leads))
            return &form;
    return nullptr;
}

Character first_of(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const Form* const form = form_of(byte(0));
    if (form == nullptr || text.size() < form->length)
        return {};
    const unsigned bits_of_lead = form->length == 1 ? 0x7f : 0xffu >> (form->length + 1);
    uint32_t code = byte(0) & bits_of_lead;
    for (size_t i = 1; i < form->length; ++i) {
        if ((byte(i) & 0xc0) != 0x80)
            return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    const bool allowed = is_within(code, form->codes) && !is_within(code, kSurrogates);
    return allowed ? Character{code, form->length} : Character{};
}

bool is_harmless(uint32_t code) {
    for (const Range& range : kHarmful)
        if (is_within(code, range))
            return false;
    return true;
}

}  // namespace

size_t printable_length(std::string_view text) {
    const Character first = first_of(text);
    return is_harmless(first.code) ? first.length : 0;
}

}  // namespace cuslice
