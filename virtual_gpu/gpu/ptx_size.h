// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

namespace cuslice {

// Adds up what the variables of a PTX text take that a compiler has to keep: those that are declared .visible or .weak
// in the global state space. Takes the text in pieces, cut anywhere.
class PtxSize {
  public:
    void add(std::string_view text) {
        for (const char c : text)
            take(c);
    }
    uint64_t bytes() const { return bytes_; }

  private:
    void take(char c);
    bool enter_comment(char last, char c);
    void leave_comment();
    void take_text(char c);
    void close(char c);
    void take_mark(char c);
    void end_word();
    void take_extent(std::string_view word);
    void take_directive(std::string_view word);
    void end_variable();
    void end_statement();

    enum class In : uint8_t { text, line_comment, comment, quotes };
    In in_ = In::text;
    char last_ = '\0';
    unsigned depth_ = 0;  // of braces and brackets other than those of an extent
    char word_[24] = {};
    unsigned length_ = 0;

    // State of the statement so far.
    bool global_ = false, kept_ = false, elsewhere_ = false, value_ = false, in_extent_ = false;
    uint64_t element_ = 0, lanes_ = 1, count_ = 1;

    uint64_t bytes_ = 0;
};

}  // namespace cuslice
