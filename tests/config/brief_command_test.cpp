// SPDX-License-Identifier: Apache-2.0
// The part of a command line that may stand in a file which others read.
#include "config/brief_command.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace cuslice {
namespace {

std::string brief(const std::vector<std::string>& words) {
    std::string bytes;
    for (const std::string& word : words)
        bytes += word + '\0';
    return std::string(brief_command(CommandWords(bytes)).view());
}

}  // namespace

TEST_CASE("a command has its program, its script or its module, and no argument") {
    CHECK(brief({"/opt/a.out", "--token=secret", "b"}) == "a.out");
    CHECK(brief({"/usr/bin/python3.11", "-u", "-X", "dev", "/home/a/train.py", "--token", "secret"}) ==
          "python3.11 train.py");
    CHECK(brief({"python", "-m", "torch.distributed.run", "secret"}) == "python -m torch.distributed.run");
    CHECK(brief({"python", "-c", "secret"}) == "python -c");
    CHECK(brief({"python", "-"}) == "python");
    CHECK(brief({"python", "-m"}) == "python -m");
    CHECK(brief({"bash", "-X", "job.sh"}) == "bash job.sh");  // takes no value in a shell
    CHECK(brief({"sshd: user@pts/0"}) == "sshd: user@pts/0");
    CHECK(brief({"/a b/c"}) == "/a b/c");
    CHECK(brief({""}).empty());
    CHECK(brief({}).empty());
}

TEST_CASE("words that are cut off, or too long, end no reader") {
    CHECK(brief_command(CommandWords("python")).view() == "python");
    CHECK(brief_command(CommandWords(std::string_view("python\0-X", 9))).view() == "python");
    CHECK(brief_command(CommandWords(std::string_view("python\0\0a", 9))).view() == "python ");
    CHECK(brief({"python", std::string(1000, 'a')}).size() < 200);
}

}  // namespace cuslice
