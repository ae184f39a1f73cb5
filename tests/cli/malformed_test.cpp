// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>

#include "config/key.h"
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

// `row` starts nothing, and stderr has one line, which begins with `message`.
void check_refused(const Malformed& row, const std::string& message) {
    Prepared prepared;
    prepare(row, prepared);
    const Outcome outcome = run(prepared.words, prepared.environment, prepared.folder.path() + "/work");
    INFO(row.text << ": " << outcome.err);
    CHECK(outcome.err.starts_with("cuslice: " + replace(message, "%CONFIG%", prepared.config)));
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    CHECK(outcome.exit_code == 78);
    CHECK_FALSE(std::filesystem::exists(prepared.marker));
}

// As a file has it.
std::string in_file(const KeyTraits& traits, const std::string& value) {
    return (traits.per_gpu ? "[memory]\n" : "") + std::string(traits.name) + " = " + value + "\n";
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

TEST_CASE("every setting refuses to be empty, as an option, a variable and a key of a file") {
    for (const KeyTraits& traits : all_keys()) {
        // An empty list of GPUs is none, as CUDA_VISIBLE_DEVICES has it.
        if (traits.key == Key::gpus)
            continue;
        const std::string name(traits.name);
        const std::string variable(traits.variable);
        const std::string empty = ": \"\": ";
        check_refused({Where::option, ("--" + name + "=").c_str(), ""}, "--" + name + empty);
        check_refused({Where::variable, (variable + "=").c_str(), ""}, variable + empty);
        if (traits.in_file)
            check_refused({Where::config_file, in_file(traits, "\"\"").c_str(), ""}, "%CONFIG%:");
    }
}

TEST_CASE("every setting refuses a kind of value that it can't be in a file") {
    for (const KeyTraits& traits : all_keys()) {
        if (!traits.in_file)
            continue;
        check_refused({Where::config_file, in_file(traits, "1979-05-27").c_str(), ""}, "%CONFIG%:");
        if (!traits.stands_alone)
            check_refused({Where::config_file, in_file(traits, "true").c_str(), ""}, "%CONFIG%:");
    }
}

TEST_CASE("a setting that has a value for each GPU refuses a value for none") {
    for (const KeyTraits& traits : all_keys()) {
        if (!traits.per_gpu)
            continue;
        const std::string name = "--" + std::string(traits.name);
        check_refused({Where::option, (name + "=x=1").c_str(), ""}, name + ": x=1: 'x' names no GPU: ");
    }
}

}  // namespace cuslice::tests
