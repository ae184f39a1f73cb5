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
    void end_word();
    void end_variable();
    void end_statement();

    // Steps for a mark of the text.
    void begin_quotes() { skip_until('"'); }
    void slash() {
        if (before_ == '/')
            skip_until('\n');
    }
    void star() {
        if (before_ == '/')
            skip_until('/');
    }
    void open() { depth_++; }
    void close() {
        if (depth_)
            depth_--;
    }
    void close_body();
    void begin_extent() { in_extent_ = true; }
    void end_extent() { in_extent_ = false; }
    void begin_value() { value_ = true; }
    struct Mark {
        char character;
        bool anywhere;  // else outside of braces alone
        void (PtxSize::*step)();
    };
    static const Mark kMarks[];

    // Quotes and comments are skipped; '\0': neither.
    void skip_until(char end) {
        skipped_until_ = end;
        last_ = '\0';
    }

    char skipped_until_ = '\0', before_ = '\0', last_ = '\0';
    unsigned depth_ = 0;  // of braces and brackets other than those of an extent
    char word_[24] = {};
    unsigned length_ = 0;

    // State of the statement so far.
    bool value_ = false, in_extent_ = false;
    unsigned traits_ = 0;
    uint64_t element_ = 0, lanes_ = 1, count_ = 1;

    uint64_t bytes_ = 0;
};

}  // namespace cuslice
