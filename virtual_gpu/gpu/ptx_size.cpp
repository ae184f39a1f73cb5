// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/ptx_size.h"

#include "config/text.h"
#include "virtual_gpu/driver/ptx_type.h"

namespace cuslice {

namespace {

// 0 for what is no number, or too large a one.
uint64_t extent_of(std::string_view word) {
    if (!are_digits(word))
        return 0;
    uint64_t number = 0;
    for (const char digit : word) {
        if (__builtin_mul_overflow(number, 10u, &number))
            return 0;
        if (__builtin_add_overflow(number, value_of_digit(digit), &number))
            return 0;
    }
    return number;
}

bool in_word(char c) {
    if (is_letter(c) || is_digit(c))
        return true;
    return std::string_view("._$%").find(c) != std::string_view::npos;
}

}  // namespace

void PtxSize::take(char c) {
    const char last = last_;
    last_ = c;
    switch (in_) {
        case In::line_comment:
            if (c == '\n')
                in_ = In::text;
            return;
        case In::comment:
            if (last == '*' && c == '/')
                leave_comment();
            return;
        case In::quotes:
            if (c == '"')
                in_ = In::text;
            return;
        case In::text:
            if (!enter_comment(last, c))
                take_text(c);
    }
}

// True if these two characters begin one.
bool PtxSize::enter_comment(char last, char c) {
    if (last != '/')
        return false;
    if (c == '/')
        in_ = In::line_comment;
    else if (c == '*')
        in_ = In::comment;
    else
        return false;
    last_ = '\0';
    return true;
}

void PtxSize::leave_comment() {
    in_ = In::text;
    last_ = '\0';
}

void PtxSize::take_text(char c) {
    if (in_word(c)) {
        if (length_ < sizeof word_)
            word_[length_++] = c;
        return;
    }
    end_word();
    switch (c) {
        case '"':
            in_ = In::quotes;
            return;
        case '{':
        case '(':
            depth_++;
            return;
        case '}':
        case ')':
            close(c);
            return;
        default:
            if (!depth_)
                take_mark(c);
    }
}

void PtxSize::close(char c) {
    if (depth_)
        depth_--;
    // A function's body ends its statement, a variable's value doesn't.
    const bool end_of_body = c == '}' && !depth_ && !value_;
    if (end_of_body)
        end_statement();
}

// Outside of braces.
void PtxSize::take_mark(char c) {
    switch (c) {
        case '[':
            in_extent_ = true;
            return;
        case ']':
            in_extent_ = false;
            return;
        case '=':
            value_ = true;
            return;
        case ',':
            end_variable();
            return;
        case ';':
            end_statement();
            return;
        default:
            return;
    }
}

void PtxSize::end_word() {
    const std::string_view word(word_, length_);
    length_ = 0;
    if (word == ".managed" || word == ".extern")
        elsewhere_ = true;  // also in .attribute(.managed)
    const bool declares = !depth_ && !value_;
    if (word.empty() || !declares)
        return;
    if (in_extent_)
        take_extent(word);
    else
        take_directive(word);
}

void PtxSize::take_extent(std::string_view word) {
    if (__builtin_mul_overflow(count_, extent_of(word), &count_))
        count_ = 0;
}

void PtxSize::take_directive(std::string_view word) {
    if (word == ".global")
        global_ = true;
    if (word == ".visible" || word == ".weak")
        kept_ = true;
    if (word == ".v2")
        lanes_ = 2;
    if (word == ".v4")
        lanes_ = 4;
    if (const uint64_t element = ptx_type_bytes(word))
        element_ = element;
}

void PtxSize::end_variable() {
    uint64_t bytes = 0;
    const bool counts = global_ && kept_ && !elsewhere_;
    const bool too_large =
        __builtin_mul_overflow(count_, element_ * lanes_, &bytes) || __builtin_add_overflow(bytes_, bytes, &bytes);
    if (counts && !too_large)
        bytes_ = bytes;
    count_ = 1;
    value_ = false;
    in_extent_ = false;
}

void PtxSize::end_statement() {
    end_variable();
    global_ = false;
    kept_ = false;
    elsewhere_ = false;
    element_ = 0;
    lanes_ = 1;
}

}  // namespace cuslice
