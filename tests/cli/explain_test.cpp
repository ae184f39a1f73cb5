// SPDX-License-Identifier: Apache-2.0
// cuslice config --explain.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

// The rules beside the system's file, as long as a test needs them.
class Rules {
  public:
    explicit Rules(const std::string& text) {
        std::filesystem::create_directory(kFolder);
        std::ofstream(file) << text;
        CHECK(::chmod(kFolder.c_str(), 0755) == 0);
        CHECK(::chmod(file.c_str(), 0644) == 0);
    }
    ~Rules() { std::filesystem::remove_all(kFolder); }
    Rules(const Rules&) = delete;
    Rules& operator=(const Rules&) = delete;

    inline static const std::string kFolder = kSystemFile.substr(0, kSystemFile.rfind('/')) + "/rules.d";
    const std::string file = kFolder + "/10-lab.toml";
};

const std::string kOwnPid = std::to_string(::getpid());

std::string text_with_own() {
    return "[[rule]]\nname = \"others\"\nuser = \"4000000001\"\n"
           "[[rule]]\nname = \"elsewhere\"\nuser = \"" +
           std::to_string(::getuid()) +
           "\"\nexecutable = [\"/nowhere/*\", \"/none\"]\nlimit = \"1GiB\"\n"
           "[[rule]]\nname = \"this\"\ngroup = \"" +
           std::to_string(::getgid()) +
           "\"\nexecutable = \"/**/test_*\"\nlimit = \"8GiB\"\ngpu.1.fraction = 0.25\n"
           "[[rule]]\nname = \"rest\"\nlimit = \"2GiB\"\n";
}

// Text is for a terminal of 80 columns; JSON isn't, and holds paths of any length.
Outcome explain(const Words& words) {
    const Folder folder;
    const Outcome outcome = run(with({kLauncher, "config"}, words), plain_environment(folder.path()), folder.path());
    if (!outcome.out.empty() && outcome.out[0] == '{')
        return outcome;
    size_t at = 0;
    for (size_t end; (end = outcome.out.find('\n', at)) != std::string::npos; at = end + 1)
        CHECK(end - at <= 80);
    return outcome;
}

// In a user namespace nobody can tell that a user doesn't fit.
bool in_namespace() { return std::filesystem::read_symlink("/proc/self/ns/user") != "user:[4026531837]"; }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("config --explain says of each rule whether it fits and what decided, and what the one that holds limits") {
    if (in_namespace())
        return skip("this is a user namespace");
    const Rules rules(text_with_own());
    const Outcome outcome = explain({"--explain", kOwnPid});
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
    INFO(outcome.out);
    CHECK(outcome.out.starts_with("PROCESS     " + kOwnPid + "\nuser        " + std::to_string(::getuid()) +
                                  "\ngroups      " + std::to_string(::getgid())));
    CHECK(contains(outcome.out,
                   "\n\nRULE       FITS  WHY\n"
                   "others     no    user doesn't fit\n"
                   "elsewhere  no    executable doesn't fit\n"
                   "this       yes   all its conditions fit\n"
                   "rest       -     not asked: a rule before it holds\n"
                   "\nRule this holds.\n\nGPU  CEILING   VALUE  FROM\n*    limit     8GiB   "));
    CHECK(contains(outcome.out, "\n1    fraction  0.25   "));
}

TEST_CASE("config --explain --json says the same to programs") {
    if (in_namespace())
        return skip("this is a user namespace");
    const Rules rules(text_with_own());
    const Outcome outcome = explain({"--json", "--explain=" + kOwnPid});
    CHECK(outcome.exit_code == 0);
    const nlohmann::json json = nlohmann::json::parse(outcome.out);
    CHECK(json.at("version") == 1);
    CHECK(json.at("pid") == ::getpid());
    CHECK(json.at("user") == ::getuid());
    CHECK(json.at("user_doubt").is_null());
    CHECK(json.at("groups").at(0) == ::getgid());
    CHECK(json.at("executable") == std::filesystem::read_symlink("/proc/self/exe").string());
    CHECK(json.at("cgroups").is_array());
    CHECK(json.at("elsewhere") == false);
    CHECK(json.at("holds") == "this");
    const auto expected = nlohmann::json::parse(R"([
        {"name": "others", "origin": "F:1:1", "fits": false, "decided_by": "user", "doubt": null},
        {"name": "elsewhere", "origin": "F:4:1", "fits": false, "decided_by": "executable", "doubt": null},
        {"name": "this", "origin": "F:9:1", "fits": true, "decided_by": null, "doubt": null},
        {"name": "rest", "origin": "F:15:1", "fits": null, "decided_by": null, "doubt": null}])");
    nlohmann::json list = json.at("rules"), ceilings = json.at("ceilings");
    for (nlohmann::json* const rows : {&list, &ceilings})
        for (auto& row : *rows) {
            const std::string origin = row.at("origin");
            REQUIRE(origin.starts_with(rules.file));
            row["origin"] = "F" + origin.substr(rules.file.size());
        }
    CHECK(list == expected);
    CHECK(ceilings == nlohmann::json::parse(R"([
        {"gpu": "*", "key": "limit", "value": "8GiB", "origin": "F:13:1"},
        {"gpu": "1", "key": "fraction", "value": "0.25", "origin": "F:14:7"}])"));
}

TEST_CASE("config --explain tells of no rules, of none that holds, and of an exemption") {
    CHECK(explain({"--explain", kOwnPid}).out.ends_with("\nThere are no rules.\n"));
    {
        const Rules rules("[[rule]]\nname = \"a\"\nexecutable = \"/none\"\nlimit = \"1GiB\"\n");
        CHECK(
            explain({"--explain", kOwnPid}).out.ends_with("\na     no    executable doesn't fit\n\nNo rule holds.\n"));
        const std::string json = explain({"--explain", kOwnPid, "--json"}).out;
        CHECK(nlohmann::json::parse(json).at("holds").is_null());
    }
    const Rules rules("[[rule]]\nname = \"admins\"\n");
    CHECK(explain({"--explain", kOwnPid})
              .out.ends_with("\nadmins  yes   it has no conditions\n\nRule admins holds. It limits nothing.\n"));
}

TEST_CASE("config --explain says what can't be told of a process in namespaces, and that it may have other rules") {
    if (!can_unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return;
    const Rules rules(
        "[[rule]]\nname = \"a\"\nuser = \"4000000001\"\n"
        "[[rule]]\nname = \"b\"\ngroup = \"4000000001\"\nlimit = \"1GiB\"\n");
    // The program in the namespace asks nobody: it waits until the shell around it has asked.
    const Folder folder;
    const std::string script = "mkfifo " + folder.path() + "/end " + folder.path() +
                               "/begun; unshare --user --mount sh -c 'echo > " + folder.path() + "/begun; read x < " +
                               folder.path() + "/end' & read x < " + folder.path() + "/begun; " + kLauncher +
                               " config --explain $!; code=$?; echo > " + folder.path() + "/end; wait; exit $code";
    const Outcome outcome = run({"/bin/sh", "-c", script}, plain_environment(folder.path()), folder.path());
    INFO(outcome.out);
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, " (not sure: user namespace)\n"));
    CHECK(contains(outcome.out,
                   "\nIt has another mount namespace or root: it reads the rules that are there, not\nthese.\n"));
    CHECK(contains(outcome.out,
                   "\na     no    user can't be told: user namespace; an exemption doesn't hold then\n"
                   "b     yes   group can't be told: user namespace; a limit holds then\n"));
}

TEST_CASE("config --explain of a process that isn't there, or that one may not look at, says so and exits 69") {
    const Outcome gone = explain({"--explain", "2147483647"});
    CHECK(gone.err == "cuslice: process 2147483647: no such process\n");
    CHECK(gone.exit_code == 69);
    CHECK(gone.out.empty());
    if (!can_be_other_users())
        return;
    // A copy, as the tree may lie where that user can't go.
    const Folder folder;
    const std::string launcher = folder.path() + "/cuslice";
    std::filesystem::copy_file(CUSLICE_TEST_LAUNCHER_ANYWHERE, launcher);
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
    const Words other = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    const Outcome hidden = run(with(other, {launcher, "config", "--explain", kOwnPid}), {}, folder.path());
    CHECK(hidden.err ==
          "cuslice: process " + kOwnPid + ": /proc/" + kOwnPid + "/exe cannot be read: permission denied\n");
    CHECK(hidden.exit_code == 69);
    CHECK(hidden.out.empty());
}

TEST_CASE("config --explain refuses a mistake in the rules, as a program does") {
    const Rules rules("[[rule]]\nname = \"a\"\nlimit = \"0\"\n");
    const Outcome outcome = explain({"--explain", kOwnPid});
    CHECK(outcome.err ==
          "cuslice: " + rules.file + ":3:1: rule.limit: 0: a limit of 0 leaves no memory: more than 0\n");
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.out.empty());
}

TEST_CASE("config --explain has the rule's own words for a share of time and its cap") {
    const Rules rules("[[rule]]\nname = \"this\"\ntime-share = \"40%\"\ngpu.1.time-share-cap = \"80%\"\n");
    const Outcome outcome = explain({"--explain", kOwnPid});
    CHECK(contains(outcome.out, "\n*    time-share      40%    "));
    CHECK(contains(outcome.out, "\n1    time-share-cap  80%    "));
}

}  // namespace cuslice::tests
