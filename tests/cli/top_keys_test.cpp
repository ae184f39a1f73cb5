// SPDX-License-Identifier: Apache-2.0
// Keys of the live view, and the line that is typed in its last row.
#include <string>
#include <vector>

#include "cli/top/keys.h"
#include "cli/top/prompt.h"
#include "tests/catch.h"

namespace cuslice::tests {

using namespace cli::top;

TEST_CASE("top: keys scroll and quit, also where a sequence comes in pieces or begins in vain") {
    using Wish = Keys::Wish;
    const auto wishes = [](const std::string& bytes) {
        Keys keys;
        std::vector<Wish> all;
        for (const char byte : bytes)
            if (const Wish wish = keys.read(byte); wish != Wish::none)
                all.push_back(wish);
        return all;
    };
    CHECK(wishes("\x1b[A\x1b[B\x1bOA\x1bOB") == std::vector{Wish::up, Wish::down, Wish::up, Wish::down});
    CHECK(wishes("\x1b[5~\x1b[6~ ") == std::vector{Wish::page_up, Wish::page_down, Wish::page_down});
    CHECK(wishes("\x1b[H\x1b[F\x1b[1~\x1b[4~gG") ==
          std::vector{Wish::top, Wish::bottom, Wish::top, Wish::bottom, Wish::top, Wish::bottom});
    CHECK(wishes("q") == std::vector{Wish::quit});
    CHECK(wishes("\x1bq") == std::vector{Wish::quit});
    CHECK(wishes("\x1b\x1b[Ak") == std::vector{Wish::up, Wish::up});
    // A key that means nothing here holds no q in it.
    CHECK(wishes("\x1b[24;5~x").empty());
    CHECK(wishes("\x1b[" + std::string(40, '1') + "~").empty());
}

TEST_CASE("top: each key of the help means something, and a lone Escape is known once nothing follows") {
    using Wish = Keys::Wish;
    Keys keys;
    CHECK(keys.read('s') == Wish::sort);
    CHECK(keys.read('r') == Wish::reverse);
    CHECK(keys.read('/') == Wish::filter);
    CHECK(keys.read('t') == Wish::tree);
    CHECK(keys.read('l') == Wish::limit);
    CHECK(keys.read('?') == Wish::help);
    CHECK(keys.read('h') == Wish::help);
    CHECK(keys.read('x') == Wish::none);
    CHECK(keys.pause() == Wish::none);
    CHECK(keys.read('\x1b') == Wish::none);
    CHECK(keys.waiting());
    CHECK(keys.pause() == Wish::escape);
    CHECK_FALSE(keys.waiting());
    // The rest of a sequence may be late: it isn't a lone Escape.
    keys.read('\x1b'), keys.read('[');
    CHECK(keys.pause() == Wish::none);
    CHECK(keys.read('A') == Wish::up);
}

TEST_CASE("top: a line is typed with what a terminal's line has, and isn't longer than a row needs") {
    const auto typed = [](const std::string& bytes) {
        Prompt prompt("ab");
        for (const char byte : bytes)
            CHECK(prompt.read(byte) == Prompt::State::typing);
        return prompt.text();
    };
    CHECK(typed("cd") == "abcd");
    CHECK(typed("\x7f") == "a");
    CHECK(typed("\b\b\b\b") == "");
    CHECK(typed("é\x7f") == "ab");
    CHECK(typed("\x15xyz") == "xyz");
    CHECK(typed("\x01\x02") == "ab");
    CHECK(typed(std::string(1000, 'x')).size() == 200);
    Prompt prompt;
    CHECK(prompt.read('\t') == Prompt::State::next);
    CHECK(prompt.read('\n') == Prompt::State::entered);
    CHECK(prompt.read('\r') == Prompt::State::entered);
    CHECK(prompt.text().empty());
}

}  // namespace cuslice::tests
