// SPDX-License-Identifier: Apache-2.0
// mistakes.txt: each mistake is answered shortly, and with its fix.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/plain_environment.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

struct Mistake {
    std::string command;
    int exit_code = 0;
    std::string answer;
};

std::vector<Mistake> read_mistakes() {
    std::vector<Mistake> mistakes;
    std::ifstream file(CUSLICE_TEST_MISTAKES);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#')
            continue;
        Mistake mistake;
        REQUIRE(line.rfind("$ ", 0) == 0);
        mistake.command = line.substr(2);
        REQUIRE(std::getline(file, line));
        const size_t space = line.find(' ');
        REQUIRE(space != line.npos);
        mistake.exit_code = std::stoi(line.substr(0, space));
        mistake.answer = line.substr(space + 1);
        mistakes.push_back(mistake);
    }
    return mistakes;
}

// Empty where there is none.
std::string tool(const std::string& name) {
    for (const std::string folder : {"/usr/bin/", "/bin/", "/usr/local/bin/"})
        if (::access((folder + name).c_str(), X_OK) == 0)
            return folder + name;
    return {};
}

void replace_all(std::string& text, const std::string& part, const std::string& by) {
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += by.size())
        text.replace(at, part.size(), by);
}

// Commands by these names alone, whatever else the machine has.
void make_commands(const Folder& folder) {
    std::filesystem::create_directory(folder.path() + "/bin");
    const auto link = [&](const std::string& file, const std::string& name) {
        std::filesystem::create_symlink(file, folder.path() + "/bin/" + name);
    };
    link(CUSLICE_TEST_DOCTOR_TREE "/bin/cuslice", "cuslice");
    link(tool("true"), "true");
    link(tool("python3"), "python3");
}

// In an empty folder with train.py, on a machine of two GPUs that nobody else sees.
Outcome make(const Mistake& mistake) {
    const Folder folder;
    make_commands(folder);
    folder.write("here/train.py", "print(1)\n");
    std::vector<std::string> environment = plain_environment(folder.path());
    environment.at(0) = "PATH=" + folder.path() + "/bin";
    for (const std::string& variable : {std::string("CUSLICE_FAKE=2xt4"), std::string("CUSLICE_FAKE_MACHINE=new"),
                                        "CUSLICE_DIR=" + folder.path() + "/ledgers"})
        environment.push_back(variable);
    Outcome outcome = run({"/bin/sh", "-c", mistake.command}, environment, folder.path() + "/here");
    outcome.out += outcome.err;
    replace_all(outcome.out, folder.path(), "");
    return outcome;
}

}  // namespace

TEST_CASE("common mistakes are answered in three lines at most, with what to write instead") {
    if (tool("python3").empty())
        return skip("there is no python3 here");
    const std::vector<Mistake> mistakes = read_mistakes();
    CHECK(mistakes.size() >= 80);
    for (const Mistake& mistake : mistakes) {
        const Outcome outcome = make(mistake);
        INFO("$ " << mistake.command << "\n" << outcome.out << "wanted: " << mistake.answer);
        CHECK(outcome.exit_code == mistake.exit_code);
        CHECK(outcome.out.size() <= 300);
        CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') <= 3);
        std::string line = outcome.out;
        std::replace(line.begin(), line.end(), '\n', ' ');
        CHECK(std::regex_search(line, std::regex(mistake.answer, std::regex::extended)));
    }
}

}  // namespace cuslice::tests
