// SPDX-License-Identifier: Apache-2.0
// A line of text that a user of the live view types in its last row. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace cuslice::cli::top {

class Prompt {
  public:
    enum class State : uint8_t { typing, entered, next };

    explicit Prompt(std::string text = {}) : text_(std::move(text)) {}
    /// Takes one byte that is no part of an escape sequence. `next`: Tab was pressed.
    State read(char byte);
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

}  // namespace cuslice::cli::top
