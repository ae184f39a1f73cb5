// SPDX-License-Identifier: Apache-2.0
// Descriptors that a program finds open, above all where its standard ones were closed.
#include <algorithm>
#include <sstream>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

struct Open {
    int number = -1;
    std::string file;
};

// The program writes down what it has open.
constexpr const char* kList =
    "import os, sys\n"
    "names = sorted(os.listdir('/proc/self/fd'), key=int)\n"
    "there = [n for n in names if os.path.lexists('/proc/self/fd/' + n)]\n"
    "lines = [n + ' ' + os.readlink('/proc/self/fd/' + n) + '\\n' for n in there]\n"
    "open(sys.argv[1], 'w').write(''.join(lines))\n";

// `closing`: as a shell closes descriptors, "2>&-".
std::vector<Open> open_in_program(const std::string& closing, const Words& options) {
    const Folder folder;
    const std::string list = folder.path() + "/list";
    const Words program = {"/usr/bin/env", "python3", "-c", kList, list};
    const Words words =
        options.empty() ? program : launch(with(options, {"--dir=" + folder.path() + "/shared"}), program);
    const Words shell = {"/bin/sh", "-c", "exec \"$@\" " + closing, "sh"};
    CHECK(run(with(shell, words), plain_environment(folder.path())).exit_code == 0);
    std::vector<Open> found;
    std::istringstream lines(read_text(list));
    for (Open one; lines >> one.number && std::getline(lines >> std::ws, one.file);)
        found.push_back(one);
    return found;
}

bool is_presence(const Open& one) { return one.file.ends_with(".alive"); }
bool is_ours(const Open& one) { return is_presence(one) || one.file.ends_with(".ledger"); }

std::vector<int> numbers_above_standard(const std::vector<Open>& open) {
    std::vector<int> numbers;
    for (const Open& one : open)
        if (one.number > 2 && !is_ours(one))
            numbers.push_back(one.number);
    return numbers;
}

}  // namespace

TEST_CASE(
    "closed standard descriptors are /dev/null for the program, and what the launcher keeps open is none of them") {
    for (const std::string closing : {"", "<&-", ">&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
        INFO(closing);
        // A slice is reserved, so that there is a presence to keep.
        const std::vector<Open> open = open_in_program(closing, {"--fake=2xstub", "--gpus=1", "--limit=1GiB"});
        REQUIRE(std::count_if(open.begin(), open.end(), is_presence) == 1);
        CHECK(std::find_if(open.begin(), open.end(), is_presence)->number >= 10);
        const auto is_null = [&](int number) {
            return std::any_of(open.begin(), open.end(),
                               [&](const Open& one) { return one.number == number && one.file == "/dev/null"; });
        };
        if (closing.find('<') != closing.npos)
            CHECK(is_null(0));
        if (closing.starts_with(">") || closing.find(" >") != closing.npos)
            CHECK(is_null(1));
        if (closing.find("2>") != closing.npos)
            CHECK(is_null(2));
        // The files that filled the low numbers meanwhile are closed, and those that the program was started with are
        // open.
        CHECK(numbers_above_standard(open) == numbers_above_standard(open_in_program("", {})));
    }
}

}  // namespace cuslice::tests
