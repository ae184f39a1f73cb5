// SPDX-License-Identifier: Apache-2.0
#include "config/number.h"

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "tests/catch.h"

using namespace cuslice;

TEST_CASE("a number is read as far as its digits go") {
    const char* const text = " 12-345";
    const char* end = nullptr;
    CHECK(read_number(text, &end) == 12);
    CHECK(end == text + 3);
    CHECK(read_number("18446744073709551615") == ~uint64_t{0});
    CHECK(read_number("18446744073709551616") == ~uint64_t{0});
    CHECK(read_number("fF", nullptr, 16) == 255);
    for (const char* none : {"", "-1", "x", " ", "+1"}) {
        CAPTURE(none);
        CHECK(read_number(none, &end) == 0);
        CHECK(end == none);
    }
}

TEST_CASE("a signed number may have a minus, and its rest is what comes behind") {
    const char* end = nullptr;
    const char* const text = "  -86400   7\n";
    CHECK(read_signed(text, &end) == -86400);
    CHECK(read_signed(end) == 7);
}

TEST_CASE("numbers are what the C library reads") {
    std::mt19937_64 random(7);
    const std::string_view letters = "0123456789abcfF -:";
    for (int i = 0; i < 20'000; i++) {
        std::string text;
        for (uint64_t n = random() % 24; n > 0; n--)
            text += letters[random() % letters.size()];
        const size_t first = text.find_first_not_of(' ');
        // Signs and the x of a hexadecimal number are nobody's here.
        if (first != text.npos && text[first] == '-')
            continue;
        CAPTURE(text);
        for (const unsigned base : {10u, 16u}) {
            const char* ours = nullptr;
            char* theirs = nullptr;
            CHECK(read_number(text.c_str(), &ours, base) ==
                  std::strtoull(text.c_str(), &theirs, static_cast<int>(base)));
            CHECK(ours == theirs);
        }
    }
}
