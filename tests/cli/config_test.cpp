// cuslice config.
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
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
        user +
        ":3:1\n"
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
        "wait              -    no                         default\n"
        "dir               -    /dev/shm/cuslice           default\n"
        "log               -    info                       " +
        user +
        ":1:1\n"
        "summary           -    no                         default\n"
        "record            -    none                       default\n"
        "config            -    none                       default\n"
        "driver            -    found as the loader would  default\n"
        "fake              -    none                       default\n"
        "fake-kernels      -    skip                       default\n"
        "\n"
        "FILE            STATE   PATH\n"
        "current-folder  absent  " +
        home +
        "/cuslice.toml\n"
        "user-file       found   " +
        user +
        "\n"
        "system-file     absent  " +
        kSystemFile + "\n";
    CHECK(outcome.out == expected);
}

TEST_CASE("config --json says the same to programs") {
    const Folder folder;
    const std::string file = folder.write("se\"t.toml", "[gpu.\"GPU-5f\"]\nfraction = 0.5\n");
    const Outcome outcome =
        run({kLauncher, "config", "--json", "--config", file, "--log=warn", "--driver=/etc/hostname"},
            plain_environment(folder.path()), "/");
    CHECK(outcome.exit_code == 0);
    const std::string quoted = folder.path() + "/se\\\"t.toml";
    const std::string expected =
        "{\"version\": 1, \"settings\": [\n"
        "  {\"key\": \"fraction\", \"gpu\": \"GPU-5f\", \"value\": \"0.5\", \"source\": \"config-file\", \"origin\": "
        "\"" +
        quoted +
        ":2:1\"},\n"
        "  {\"key\": \"limit\", \"gpu\": \"*\", \"value\": \"the whole GPU\", \"source\": \"default\", \"origin\": "
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
        "  {\"key\": \"gpus\", \"gpu\": null, \"value\": \"all that are visible\", \"source\": \"default\", "
        "\"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"split\", \"gpu\": \"*\", \"value\": \"none\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"oversubscribe\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"group\", \"gpu\": null, \"value\": \"none\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"group-limit\", \"gpu\": \"*\", \"value\": \"none\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"per-process\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"wait\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": \"default\"},\n"
        "  {\"key\": \"dir\", \"gpu\": null, \"value\": \"/dev/shm/cuslice\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"log\", \"gpu\": null, \"value\": \"warn\", \"source\": \"flag\", \"origin\": \"--log\"},\n"
        "  {\"key\": \"summary\", \"gpu\": null, \"value\": \"no\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"record\", \"gpu\": null, \"value\": \"none\", \"source\": \"default\", \"origin\": "
        "\"default\"},\n"
        "  {\"key\": \"config\", \"gpu\": null, \"value\": \"" +
        quoted +
        "\", \"source\": \"flag\", \"origin\": \"--config\"},\n"
        "  {\"key\": \"driver\", \"gpu\": null, \"value\": \"/etc/hostname\", \"source\": \"flag\", \"origin\": "
        "\"--driver\"},\n"
        "  {\"key\": \"fake\", \"gpu\": null, \"value\": \"none\", \"source\": \"default\", \"origin\": \"default\"},\n"
        "  {\"key\": \"fake-kernels\", \"gpu\": null, \"value\": \"skip\", \"source\": \"default\", \"origin\": "
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

}  // namespace cuslice::tests
