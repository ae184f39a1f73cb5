// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/ptx_size.h"

#include <algorithm>

#include "config/text.h"
#include "virtual_gpu/driver/ptx_type.h"

namespace cuslice {

namespace {

// Traits of a variable. Words with one are known wherever they stand, as in .attribute(.managed): where nothing is
// declared there is no size either.
constexpr unsigned kGlobal = 1, kKept = 2, kElsewhere = 4;

constexpr struct {
    std::string_view text;
    unsigned traits;
    uint64_t lanes;
} kWords[] = {{".global", kGlobal, 1},    {".visible", kKept, 1}, {".weak", kKept, 1}, {".managed", kElsewhere, 1},
              {".extern", kElsewhere, 1}, {".v2", 0, 2},          {".v4", 0, 4}};

// 0 for what is no number, or too large a one.
uint64_t extent_of(std::string_view word) {
    constexpr size_t kMostDigits = 19;  // of a number that fits whatever they are
    return are_digits(word) && word.size() <= kMostDigits ? decimal_number(word) : 0;
}

bool in_word(char c) {
    if (is_letter(c) || is_digit(c))
        return true;
    return std::string_view("._$%").find(c) != std::string_view::npos;
}

}  // namespace

const PtxSize::Mark PtxSize::kMarks[] = {
    {'"', true, &PtxSize::begin_quotes}, {'/', true, &PtxSize::slash},         {'*', true, &PtxSize::star},
    {'{', true, &PtxSize::open},         {'(', true, &PtxSize::open},          {')', true, &PtxSize::close},
    {'}', true, &PtxSize::close_body},   {'[', false, &PtxSize::begin_extent}, {']', false, &PtxSize::end_extent},
    {'=', false, &PtxSize::begin_value}, {',', false, &PtxSize::end_variable}, {';', false, &PtxSize::end_statement},
};

void PtxSize::take(char c) {
    before_ = last_;
    last_ = c;
    if (skipped_until_) {
        const bool ends = c == skipped_until_ && (c != '/' || before_ == '*');
        if (ends)
            skip_until('\0');
        return;
    }
    if (in_word(c)) {
        if (length_ < sizeof word_)
            word_[length_++] = c;
        return;
    }
    if (length_)
        end_word();
    for (const Mark& mark : kMarks)
        if (mark.character == c && (mark.anywhere || !depth_))
            (this->*mark.step)();
}

// A function's body ends its statement, a variable's value doesn't.
void PtxSize::close_body() {
    close();
    if (!depth_ && !value_)
        end_statement();
}

void PtxSize::end_word() {
    const std::string_view word(word_, length_);
    length_ = 0;
    for (const auto& known : kWords) {
        if (word == known.text) {
            traits_ |= known.traits;
            lanes_ = std::max(lanes_, known.lanes);
        }
    }
    if (depth_ || value_)
        return;
    if (!in_extent_)
        element_ = std::max(element_, ptx_type_bytes(word));
    else if (__builtin_mul_overflow(count_, extent_of(word), &count_))
        count_ = 0;
}

void PtxSize::end_variable() {
    uint64_t bytes = 0;
    const bool too_large =
        __builtin_mul_overflow(count_, element_ * lanes_, &bytes) || __builtin_add_overflow(bytes_, bytes, &bytes);
    if (traits_ == (kGlobal | kKept) && !too_large)
        bytes_ = bytes;
    count_ = 1;
    value_ = false;
    in_extent_ = false;
}

void PtxSize::end_statement() {
    end_variable();
    traits_ = 0;
    element_ = 0;
    lanes_ = 1;
}

}  // namespace cuslice
