#include "virtual_gpu/gpu/ptx_size.h"

#include "virtual_gpu/driver/ptx_type.h"

namespace cuslice {

namespace {

bool in_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '$' || c == '%';
}

}  // namespace

void PtxSize::take(char c) {
    const char last = last_;
    last_ = c;
    switch (in_) {
        case In::line_comment:
            if (c == '\n') in_ = In::text;
            return;
        case In::comment:
            if (last == '*' && c == '/') in_ = In::text, last_ = '\0';
            return;
        case In::quotes:
            if (c == '"') in_ = In::text;
            return;
        case In::text:
            if (last == '/' && (c == '/' || c == '*')) {
                in_ = c == '/' ? In::line_comment : In::comment;
                last_ = '\0';
            } else {
                take_text(c);
            }
    }
}

void PtxSize::take_text(char c) {
    if (in_word(c)) {
        if (length_ < sizeof word_) word_[length_++] = c;
        return;
    }
    end_word();
    if (c == '"') in_ = In::quotes;
    if (c == '{' || c == '(') depth_++;
    if ((c == '}' || c == ')') && depth_) depth_--;
    // A function's body ends its statement, a variable's value doesn't.
    if (c == '}' && !depth_ && !value_) end_statement();
    if (depth_) return;
    if (c == '[') in_extent_ = true;
    if (c == ']') in_extent_ = false;
    if (c == '=') value_ = true;
    if (c == ',') end_variable();
    if (c == ';') end_statement();
}

void PtxSize::end_word() {
    const std::string_view word(word_, length_);
    length_ = 0;
    if (word == ".managed" || word == ".extern") elsewhere_ = true;  // also in .attribute(.managed)
    if (word.empty() || depth_ || value_) return;
    if (in_extent_) {
        std::uint64_t number = 0;
        bool known = true;
        for (const char digit : word) {
            known = known && digit >= '0' && digit <= '9' && !__builtin_mul_overflow(number, 10u, &number) &&
                    !__builtin_add_overflow(number, static_cast<unsigned>(digit - '0'), &number);
        }
        if (!known || __builtin_mul_overflow(count_, number, &count_)) count_ = 0;
    } else if (word == ".global") {
        global_ = true;
    } else if (word == ".visible" || word == ".weak") {
        kept_ = true;
    } else if (word == ".v2" || word == ".v4") {
        lanes_ = word == ".v2" ? 2 : 4;
    } else if (const std::uint64_t element = ptx_type_bytes(word)) {
        element_ = element;
    }
}

void PtxSize::end_variable() {
    std::uint64_t bytes = 0;
    if (global_ && kept_ && !elsewhere_ && !__builtin_mul_overflow(count_, element_ * lanes_, &bytes) &&
        bytes_ + bytes >= bytes_)
        bytes_ += bytes;
    count_ = 1;
    value_ = in_extent_ = false;
}

void PtxSize::end_statement() {
    end_variable();
    global_ = kept_ = elsewhere_ = false;
    element_ = 0;
    lanes_ = 1;
}

}  // namespace cuslice
