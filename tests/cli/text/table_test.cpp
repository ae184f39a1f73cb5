// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "cli/text/table.h"

#include "tests/catch.h"

namespace cuslice::tests {

TEST_CASE("a table shows what would do something to the terminal as bytes: names in it are other people's") {
    CHECK(cli::format_table({{"\x1b[31m", "B"}, {"\u202e\n", "x"}}) ==
          "\\x1b[31m          B\n\\xe2\\x80\\xae\\x0a  x\n");
    CHECK(cli::format_table({{"\xff\xc3", "é€"}}) == "\\xff\\xc3  é€\n");
}

TEST_CASE("a table that is too wide becomes several, which begin with the same columns") {
    const std::string wide(34, 'a'), name(90, 'n');
    CHECK(cli::format_table({{"PID", "A", "B", "C"}, {"12", wide, wide, "x y z"}}) ==
          "PID  A                                   B\n"
          "12   " +
              wide + "  " + wide +
              "\n\n"
              "PID  C\n"
              "12   x y z\n");
    // The last column goes on in the next line, where there is room for one.
    CHECK(cli::format_table({{"KEY", "FROM"}, {"k", name}, {"l", "é"}}) ==
          "KEY  FROM\nk    " + std::string(75, 'n') + "\n     " + std::string(15, 'n') + "\nl    é\n");
}

TEST_CASE("no table is wider than a terminal, and nothing is lost, whatever its columns hold") {
    uint64_t state = 1;
    const auto draw = [&](uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    for (int round = 0; round < 200; ++round) {
        const size_t columns = 1 + draw(13), keys = 1 + draw(2);
        std::vector<std::vector<cli::Cell>> rows(1 + draw(5));
        size_t letters = 0;
        for (size_t row = 0; row < rows.size(); ++row)
            for (size_t i = 0; i < columns; ++i) {
                rows[row].emplace_back(std::string(1 + draw(draw(4) == 0 ? 120 : 14), i < keys ? 'k' : 'v'));
                if (i >= keys)
                    letters += rows[row].back().text.size();
            }
        cli::TableStyle style;
        style.keys = keys;
        style.width = draw(2) == 0 ? 80 : 40 + draw(120);
        const std::string table = cli::format_table(rows, style);
        size_t width = 0, found = 0;
        for (const char c : table) {
            width = c == '\n' ? 0 : width + 1;
            found += c == 'v';
            if (width > style.width)
                FAIL(table);
        }
        CHECK(found == letters);
    }
}

TEST_CASE("text is wrapped between words, in 80 columns") {
    CHECK(cli::wrap("", 2).empty());
    CHECK(cli::wrap("a b", 2) == "  a b\n");
    const std::string word(39, 'w');
    CHECK(cli::wrap(word + " " + word, 1) == " " + word + " " + word + "\n");
    CHECK(cli::wrap(word + " " + word, 2) == "  " + word + "\n  " + word + "\n");
}

TEST_CASE("sizes in a table are whole MiB, and GiB from 10 GiB on, as messages have them") {
    constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
    CHECK(cli::format_memory(0) == "0 MiB");
    CHECK(cli::format_memory(4 * kGiB + kMiB / 2) == "4097 MiB");
    CHECK(cli::format_memory(4 * kGiB + kMiB / 2 - 1) == "4096 MiB");
    CHECK(cli::format_memory(10 * kGiB - kMiB) == "10239 MiB");
    CHECK(cli::format_memory(10 * kGiB) == "10.0 GiB");
    CHECK(cli::format_memory(143771 * kMiB) == "140.4 GiB");
}

TEST_CASE("a table is as wide as the terminal, and its flexible column is cut off before it becomes several") {
    const std::string command = "python train.py --epochs 300 --learning-rate 0.001";
    const auto table = [&](size_t width, bool utf8 = true) {
        cli::TableStyle style;
        style.width = width;
        style.flexible = 1;
        style.right = {2};
        style.utf8 = utf8;
        return cli::format_table({{"PID", "COMMAND", "USED", "NAME"}, {"812", command, "9 MiB", "lab"}}, style);
    };
    CHECK(table(cli::kUnlimited) ==
          "PID  COMMAND                                              USED  NAME\n"
          "812  " +
              command + "  9 MiB  lab\n");
    CHECK(table(68) == table(cli::kUnlimited));
    CHECK(table(50) ==
          "PID  COMMAND                            USED  NAME\n"
          "812  python train.py --epochs 300 --…  9 MiB  lab\n");
    // 24 columns are the least; then it gets what the columns before it leave.
    CHECK(table(42) ==
          "PID  COMMAND                    USED  NAME\n"
          "812  python train.py --epoch…  9 MiB  lab\n");
    CHECK(table(41, false) ==
          "PID  COMMAND\n"
          "812  python train.py --epochs 300 --lear~\n"
          "\n"
          "PID   USED  NAME\n"
          "812  9 MiB  lab\n");
}

TEST_CASE("colours are around the words of a table alone, and only where they are wanted") {
    cli::TableStyle style;
    const std::vector<std::vector<cli::Cell>> rows = {{"A", "B"}, {{"x", cli::Tone::nearly_full}, "y"}};
    CHECK(cli::format_table(rows, style) == "A  B\nx  y\n");
    style.colours = true;
    CHECK(cli::format_table(rows, style) == "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[33mx\x1b[0m  y\n");
}

TEST_CASE("wide characters take two columns of a table") {
    CHECK(cli::format_table({{"A", "B"}, {"图形", "x"}, {"abc", "y"}}) == "A     B\n图形  x\nabc   y\n");
}

}  // namespace cuslice::tests
