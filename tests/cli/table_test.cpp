#include "cli/table.h"

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
    std::uint64_t state = 1;
    const auto draw = [&](std::uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    for (int round = 0; round < 200; ++round) {
        const std::size_t columns = 1 + draw(13), keys = 1 + draw(2);
        std::vector<std::vector<std::string>> rows(1 + draw(5));
        std::size_t letters = 0;
        for (std::size_t row = 0; row < rows.size(); ++row)
            for (std::size_t i = 0; i < columns; ++i) {
                rows[row].emplace_back(1 + draw(draw(4) == 0 ? 120 : 14), i < keys ? 'k' : 'v');
                if (i >= keys) letters += rows[row].back().size();
            }
        const std::string table = cli::format_table(rows, keys);
        std::size_t width = 0, found = 0;
        for (const char c : table) {
            width = c == '\n' ? 0 : width + 1;
            found += c == 'v';
            if (width > 80) FAIL(table);
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

TEST_CASE("sizes in a table are whole MiB, so that they compare") {
    CHECK(cli::format_mib(0) == "0 MiB");
    CHECK(cli::format_mib((std::uint64_t{4} << 30) + (1 << 19)) == "4097 MiB");
    CHECK(cli::format_mib((std::uint64_t{4} << 30) + (1 << 19) - 1) == "4096 MiB");
}

}  // namespace cuslice::tests
