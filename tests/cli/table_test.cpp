#include "cli/table.h"

#include "tests/catch.h"

namespace cuslice::tests {

TEST_CASE("a table shows what would do something to the terminal as bytes: names in it are other people's") {
    CHECK(cli::format_table({{"\x1b[31m", "B"}, {"\u202e\n", "x"}}) ==
          "\\x1b[31m          B\n\\xe2\\x80\\xae\\x0a  x\n");
    CHECK(cli::format_table({{"\xff\xc3", "é€"}}) == "\\xff\\xc3  é€\n");
}

TEST_CASE("sizes in a table are whole MiB, so that they compare") {
    CHECK(cli::format_mib(0) == "0 MiB");
    CHECK(cli::format_mib((std::uint64_t{4} << 30) + (1 << 19)) == "4097 MiB");
    CHECK(cli::format_mib((std::uint64_t{4} << 30) + (1 << 19) - 1) == "4096 MiB");
}

}  // namespace cuslice::tests
