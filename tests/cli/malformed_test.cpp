// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/malformed_cases.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

std::string replace(std::string text, const std::string& what, const std::string& with) {
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
    return text;
}

struct Prepared {
    Folder folder;
    std::vector<std::string> words = {kLauncher, "run"};
    std::vector<std::string> environment = plain_environment(folder.path() + "/home");
    std::string config = folder.path() + "/config.toml";
    std::string user = folder.path() + "/home/.config/cuslice/cuslice.toml";
    std::string current = folder.path() + "/work/cuslice.toml";
    std::string marker = folder.path() + "/started";
    std::optional<SystemFile> system;
};

void prepare(const Malformed& row, Prepared& prepared) {
    const Folder& folder = prepared.folder;
    std::filesystem::create_directories(folder.path() + "/work");
    switch (row.where) {
        case Where::option:
            prepared.words.emplace_back(row.text);
            break;
        case Where::variable:
            prepared.environment.emplace_back(row.text);
            break;
        case Where::config_file:
            folder.write("config.toml", row.text);
            prepared.words.push_back("--config=" + prepared.config);
            break;
        case Where::current_folder:
            folder.write("work/cuslice.toml", row.text);
            break;
        case Where::user_file:
            folder.write("home/.config/cuslice/cuslice.toml", row.text);
            break;
        case Where::system_file:
            prepared.system.emplace(row.text);
            break;
    }
    for (const char* word : {"--", "/usr/bin/touch", prepared.marker.c_str()})
        prepared.words.emplace_back(word);
}

}  // namespace

TEST_CASE("a malformed configuration gives its whole message and starts nothing") {
    STATIC_REQUIRE(std::size(kMalformed) >= 100);
    for (const Malformed& row : kMalformed) {
        Prepared prepared;
        prepare(row, prepared);
        const Outcome outcome = run(prepared.words, prepared.environment, prepared.folder.path() + "/work");

        std::string message = replace(row.message, "%CONFIG%", prepared.config);
        message = replace(replace(message, "%USER%", prepared.user), "%CWD%", prepared.current);
        message = "cuslice: " + replace(message, "%SYSTEM%", kSystemFile) + "\n";
        INFO(row.text);
        CHECK(outcome.err == message);
        CHECK(outcome.exit_code == row.exit_code);
        CHECK(outcome.out.empty());
        CHECK_FALSE(std::filesystem::exists(prepared.marker));
    }
}

}  // namespace cuslice::tests
