// SPDX-License-Identifier: Apache-2.0
#include "config/printable.h"

#include <string>

#include "tests/catch.h"

namespace cuslice::tests {
namespace {

std::string printable(std::string_view text) {
    std::string shown;
    return append_printable(shown, text);
}

}  // namespace

TEST_CASE("text of others is shown as it is, but what a terminal would obey") {
    CHECK(printable("") == "");
    CHECK(printable("python3.11 -m train") == "python3.11 -m train");
    CHECK(printable("Übung 学習 🜲") == "Übung 学習 🜲");
    CHECK(printable("\x1b[31mR\nED\t\x7f") == "\\x1b[31mR\\x0aED\\x09\\x7f");
    CHECK(printable("C:\\x1b") == "C:\\\\x1b");  // not taken for an escape
    CHECK(printable("\xc2\x9b"
                    "1m") ==
          "\\xc2\\x9b"
          "1m");  // CSI in one character
    CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
}

TEST_CASE("what changes the direction of writing, or begins a line, is escaped") {
    CHECK(printable("a\u202eb\u2066c\u2069") == "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x81\\xa9");
    CHECK(printable("\u200e\u200f\u061c\u2028\u2029") ==
          "\\xe2\\x80\\x8e\\xe2\\x80\\x8f\\xd8\\x9c\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
    CHECK(printable("\u2027\u202f\u2065\u206a") == "\u2027\u202f\u2065\u206a");
}

TEST_CASE("bytes that are no UTF-8 are escaped one by one") {
    CHECK(printable("a\xff\xfe") == "a\\xff\\xfe");
    CHECK(printable("\xe2\x80") == "\\xe2\\x80");                    // cut off
    CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // overlong
    CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");           // overlong
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
    CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // past the last
    CHECK(printable("\x80z") == "\\x80z");
    CHECK(printable("\xe2z\xac") == "\\xe2z\\xac");
}

}  // namespace cuslice::tests
