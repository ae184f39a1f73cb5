// SPDX-License-Identifier: Apache-2.0
// Tables on a terminal of a test's own: their width and their colours.
#include "tests/cli/terminal.h"

#include "cli/ledger/holder.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/made_up_job.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

// The lines of `cuslice ps` on a terminal that is so wide.
std::vector<std::string> lines_of(const Folder& folder, unsigned columns, const Words& more) {
    Terminal terminal({kLauncher, "ps", "--dir", folder.path()}, with(plain_environment("/nowhere"), more), 24,
                      columns);
    CHECK(terminal.status() == 0);
    std::vector<std::string> lines(1);
    for (const char c : terminal.printed()) {
        if (c == '\n')
            lines.emplace_back();
        if (c != '\n' && c != '\r')
            lines.back() += c;
    }
    lines.pop_back();
    return lines;
}

}  // namespace

TEST_CASE("ps is as wide as its terminal, or as COLUMNS says") {
    const Folder folder;
    const CalledSo name("/x/python");
    const Job job(folder.path(), "python");
    const Words plain = {"TERM=dumb", "LANG=C.UTF-8"};
    const auto narrow = lines_of(folder, 80, plain), wide = lines_of(folder, 300, plain);
    CHECK(narrow.size() > 2);
    for (const std::string& line : narrow)
        CHECK(line.size() <= 82);  // an ellipsis has three bytes in one column
    REQUIRE(wide.size() == 2);
    CHECK(wide[0].ends_with(cli::ps_columns().back()->heading));
    CHECK(wide[1].find("  python ") != std::string::npos);
    CHECK(lines_of(folder, 80, with(plain, {"COLUMNS=300"})).size() == 2);
    for (const char* wrong : {"COLUMNS=", "COLUMNS=x", "COLUMNS=3", "COLUMNS=-5", "COLUMNS=99999999999999999999"})
        CHECK(lines_of(folder, 300, with(plain, {wrong})).size() == 2);
}

TEST_CASE("ps has colours on a terminal that shows them, unless NO_COLOR is set") {
    const Folder folder;
    const Job job(folder.path(), "python");
    CHECK(lines_of(folder, 300, {"TERM=xterm-256color"})[0].starts_with("\x1b[1mGPU\x1b[0m  "));
    for (const Words& plain : {Words{"TERM=xterm-256color", "NO_COLOR=1"}, Words{"TERM=dumb", "COLORTERM=truecolor"}})
        CHECK(lines_of(folder, 300, plain)[0].starts_with("GPU  "));
}

}  // namespace cuslice::tests
