// SPDX-License-Identifier: Apache-2.0
#include "cli/top/prompt.h"

#include <cstddef>

namespace cuslice::cli::top {
namespace {

constexpr size_t kLongest = 200;
constexpr char kErase = '\x7f', kEraseLine = '\x15';

// A character of UTF-8 may have several bytes.
void erase_last(std::string& text) {
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text.back());
        text.pop_back();
        if ((byte & 0xc0) != 0x80)
            return;
    }
}

}  // namespace

Prompt::State Prompt::read(char byte) {
    if (byte == '\n' || byte == '\r')
        return State::entered;
    if (byte == '\t')
        return State::next;
    if (byte == kErase || byte == '\b')
        erase_last(text_);
    else if (byte == kEraseLine)
        text_.clear();
    else if (static_cast<unsigned char>(byte) >= ' ' && text_.size() < kLongest)
        text_ += byte;
    return State::typing;
}

}  // namespace cuslice::cli::top
