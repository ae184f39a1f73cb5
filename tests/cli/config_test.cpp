// SPDX-License-Identifier: Apache-2.0
// cuslice config.
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

// A cell that begins in column `at`, as a table of 80 columns has it.
std::string folded(const std::string& text, size_t at) {
    std::string cell;
    for (size_t i = 0; i < text.size(); i += 80 - at)
        cell += (i == 0 ? "" : "\n" + std::string(at, ' ')) + text.substr(i, 80 - at);
    return cell;
}

}  // namespace

TEST_CASE("config prints what holds, where it came from, and which files were looked at") {
    const Folder folder;
    const std::string user =
        folder.write("home/.config/cuslice/cuslice.toml",
                     "log = \"info\"\n[memory]\nlimit = \"3GiB\"\n[gpu.1]\nheadroom = \"64MiB\"\n");
    const std::string home = folder.path() + "/home";
    const Outcome outcome =
        run({kLauncher, "config", "--limit", "0=4GiB"}, with(plain_environment(home), {"CUSLICE_HEADROOM=1MiB"}), home);
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
    // The user's own headroom for GPU 1 is hidden by the environment's for every GPU.
    const std::string expected =
        "KEY               GPU  VALUE                      FROM\n"
        "limit             0    4GiB                       --limit\n"
        "limit             *    3GiB                       " +
        folded(user + ":3:1", 50) +
        "\n"
        "headroom          *    1MiB                       CUSLICE_HEADROOM\n"
        "allocator         *    direct                     default\n"
        "free              *    strict                     default\n"
        "idle-release      *    no                         default\n"
        "no-framework-env  -    no                         default\n"
        "gpus              -    all that are visible       default\n"
        "split             *    none                       default\n"
        "oversubscribe     -    no                         default\n"
        "group             -    none                       default\n"
        "group-limit       *    none                       default\n"
        "per-process       -    no                         default\n"
        "admission         -    launch                     default\n"
        "wait              -    no                         default\n"
        "dir               -    /dev/shm/cuslice           default\n"
        "log               -    info                       " +
        folded(user + ":1:1", 50) +
        "\n"
        "summary           -    no                         default\n"
        "record            -    none                       default\n"
        "config            -    none                       default\n"
        "driver            -    found as the loader would  default\n"
        "fake              -    none                       default\n"
        "fake-kernels      -    skip                       default\n"
        "fake-machine      -    one for each user          default\n"
        "\n"
        "FILE            STATE   PATH\n"
        "current-folder  absent  " +
        folded(home + "/cuslice.toml", 24) +
        "\n"
        "user-file       found   " +
        folded(user, 24) +
        "\n"
        "system-file     absent  " +
        folded(kSystemFile, 24) + "\n";
    CHECK(outcome.out == expected);
}

TEST_CASE("config --json says the same to programs") {
    const Folder folder;
    const std::string file = folder.write("se\"t.toml", "[gpu.\"GPU-5f\"]\nfraction = 0.5\n");
    const Outcome outcome = run({kLauncher, "config", "--json", "--config", file, "--log=warn", "--driver=/dev/null"},
                                plain_environment(folder.path()), "/");
    CHECK(outcome.exit_code == 0);
    const std::string quoted = folder.path() + "/se\\\"t.toml";
    const std::string expected =
        "{\"version\": 2, \"settings\": [\n"
        "  {\"key\": \"fraction\", \"gpu\": \"GPU-5f\", \"value\": \"0.5\", \"source\": \"config-file\", \"origin\": "
        "\"" +
        quoted +
        ":2:1\"},\n"
        "  {\"key\": \"limit\", \"gpu\": \"*\", \"value\": null, \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"headroom\", \"gpu\": \"*\", \"value\": \"auto\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"allocator\", \"gpu\": \"*\", \"value\": \"direct\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"free\", \"gpu\": \"*\", \"value\": \"strict\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"idle-release\", \"gpu\": \"*\", \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"no-framework-env\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"gpus\", \"gpu\": null, \"value\": null, \"source\": \"default\", "
        "\"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"split\", \"gpu\": \"*\", \"value\": null, \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"oversubscribe\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"group\", \"gpu\": null, \"value\": null, \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"group-limit\", \"gpu\": \"*\", \"value\": null, \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"per-process\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"admission\", \"gpu\": null, \"value\": \"launch\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"wait\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": \"default\"},\n"
        "  {\"key\": \"dir\", \"gpu\": null, \"value\": \"/dev/shm/cuslice\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"log\", \"gpu\": null, \"value\": \"warn\", \"source\": \"flag\", \"origin\": \"--log\"},\n"
        "  {\"key\": \"summary\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"record\", \"gpu\": null, \"value\": null, \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"config\", \"gpu\": null, \"value\": \"" +
        quoted +
        "\", \"source\": \"flag\", \"origin\": \"--config\"},\n"
        "  {\"key\": \"driver\", \"gpu\": null, \"value\": \"/dev/null\", \"source\": \"flag\", \"origin\": "
        "\"--driver\"},\n"
        "  {\"key\": \"fake\", \"gpu\": null, \"value\": null, \"source\": \"default\", \"origin\": \"default\"},\n"
        "  {\"key\": \"fake-kernels\", \"gpu\": null, \"value\": \"skip\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"fake-machine\", \"gpu\": null, \"value\": null, \"source\": \"default\", \"origin\": "
        "\"default\"}\n"
        "], \"files\": [\n"
        "  {\"source\": \"config-file\", \"state\": \"found\", \"path\": \"" +
        quoted +
        "\"},\n"
        "  {\"source\": \"current-folder\", \"state\": \"absent\", \"path\": \"//cuslice.toml\"},\n"
        "  {\"source\": \"user-file\", \"state\": \"absent\", \"path\": \"" +
        folder.path() +
        "/.config/cuslice/cuslice.toml\"},\n"
        "  {\"source\": \"system-file\", \"state\": \"absent\", \"path\": \"" +
        kSystemFile +
        "\"}\n"
        "]}\n";
    using Json = nlohmann::ordered_json;
    CHECK(Json::parse(outcome.out) == Json::parse(expected));
}

TEST_CASE(
    "config --json has null where nothing is set, and no words in its place; what is set stays as it is written") {
    const Folder folder;
    const auto settings = [&](const Words& options) {
        const Outcome outcome = run(with({kLauncher, "config", "--json"}, options), plain_environment(folder.path()));
        return nlohmann::json::parse(outcome.out).at("settings");
    };
    for (const auto& setting : settings({})) {
        INFO(setting);
        const std::string key = setting.at("key");
        const bool nothing = key == "limit" || key == "gpus" || key == "split" || key == "group" ||
                             key == "group-limit" || key == "record" || key == "config" || key == "driver" ||
                             key == "fake" || key == "fake-machine";
        CHECK(setting.at("value").is_null() == nothing);
    }
    bool seen = false;
    for (const auto& setting : settings({"--group", "none"}))
        if (setting.at("key") == "group")
            seen = setting.at("value") == "none";
    CHECK(seen);
}

}  // namespace cuslice::tests
