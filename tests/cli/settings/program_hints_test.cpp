// SPDX-License-Identifier: Apache-2.0
// Messages of cuslice run about programs that are only clients, and about its own options behind a program.
#include <algorithm>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

Outcome started(const Words& words, const Words& variables = {}) {
    const Folder folder;
    return run(with({kLauncher, "run"}, words), with(plain_environment(folder.path()), variables));
}

constexpr const char* kScript = "#!/bin/sh\necho \"$@\"\n";

}  // namespace

TEST_CASE("a client of a daemon or of another host gets one line that says who is in the slice") {
    const Folder folder;
    for (const char* name : {"docker", "podman", "nerdctl", "ssh", "sbatch", "srun", "salloc"}) {
        const std::string client = folder.write(name, kScript, 0755);
        const Outcome outcome = started({"--limit=1GiB", "--", client, "run", "--gpus", "all"});
        INFO(outcome.err);
        CHECK(outcome.exit_code == 0);
        CHECK(outcome.out == "run --gpus all\n");
        CHECK(outcome.err.starts_with("cuslice: " + std::string(name) + ": only this client is in the slice"));
        CHECK(outcome.err.find("cuslice run") != std::string::npos);
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    }
    for (const char* name : {"sudo", "su"}) {
        const Outcome outcome = started({folder.write(name, kScript, 0755), "x"});
        CHECK(outcome.err.starts_with("cuslice: " + std::string(name) + ": drops LD_PRELOAD, so what it starts is in"));
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
        CHECK(outcome.out == "x\n");
    }
    for (const char* name : {"kubectl", "qsub", "bsub", "flux", "condor_submit", "at", "batch", "systemd-run"}) {
        const Outcome outcome = started({folder.write(name, kScript, 0755), "x"});
        CHECK(outcome.err.starts_with("cuslice: " + std::string(name) + ": only this client is in the slice"));
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
        CHECK(outcome.out == "x\n");
    }
    CHECK(started({folder.write("tmux", kScript, 0755), "new"}).err.starts_with("cuslice: tmux: a server that runs"));
    CHECK(started({folder.path() + "/systemd-run", "--scope", "x"}).err.empty());
    for (const char* name : {"dockerd", "my-ssh", "sum"})
        CHECK(started({folder.write(name, kScript, 0755)}).err.empty());
}

TEST_CASE("a client is known behind what starts it, and by its words") {
    const Folder folder;
    const std::string docker = folder.write("docker", kScript, 0755), ray = folder.write("ray", kScript, 0755),
                      apptainer = folder.write("apptainer", kScript, 0755);
    const auto line = [](const Words& words) { return started(words).err; };
    const std::string of_docker = "cuslice: docker: only this client is in the slice";
    CHECK(line({"/usr/bin/env", docker}).starts_with(of_docker));
    CHECK(line({"env", "-u", "HOME", "A=1", "B=2", docker, "run"}).starts_with(of_docker));
    CHECK(line({"nohup", "nice", "-n", "5", docker}).starts_with(of_docker));
    CHECK(line({"timeout", "-k", "5", "60", docker}).starts_with(of_docker));
    CHECK(line({"env", "A=docker", "/bin/echo", "docker"}).empty());
    CHECK(line({ray, "job", "submit", "--", "x"}).starts_with("cuslice: ray: only this client is in the slice"));
    CHECK(line({ray, "start"}).empty());
    CHECK(line({apptainer, "exec", "--cleanenv", "x"}).starts_with("cuslice: apptainer: leaves LD_PRELOAD out"));
    CHECK(line({apptainer, "exec", "x"}).empty());
}

TEST_CASE("an option of cuslice behind the program is pointed out where nothing else says what the program gets") {
    const auto hint = [](const std::string& option) {
        return "cuslice: " + option +
               ": goes to the program, which gets whole GPUs; if it was meant for cuslice, write it before the "
               "program: cuslice run " +
               option + " ... -- program args\n";
    };
    const Outcome outcome = started({"/bin/echo", "--limit", "1GiB"});
    CHECK(outcome.err == hint("--limit"));
    CHECK(outcome.out == "--limit 1GiB\n");
    CHECK(outcome.exit_code == 0);
    CHECK(started({"/bin/echo", "x", "--fraction=0.4", "--split=2"}).err == hint("--fraction"));
    CHECK(started({"--log=warn", "/bin/echo", "--gpus", "1"}).err == hint("--gpus"));
    // Meant for the program, or already said.
    CHECK(started({"--", "/bin/echo", "--limit", "1GiB"}).err.empty());
    CHECK(started({"/bin/echo", "--", "--limit", "1GiB"}).err.empty());
    CHECK(started({"/bin/echo", "--limits", "--log=info", "--wait", "limit"}).err.empty());
    CHECK(started({"/bin/echo", "--limit", "1GiB"}, {"CUSLICE_FRACTION=0.5"}).err.empty());
    CHECK(started({"--fake=2xstub", "/bin/echo", "--limit", "1GiB"}).err.empty());
}

}  // namespace cuslice::tests
