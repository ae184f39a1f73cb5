// SPDX-License-Identifier: Apache-2.0
// cuslice doctor: set-ups in which nothing is wrong, and the form of what it prints.
#include <sstream>

#include "tests/cli/doctor_scene.h"

namespace cuslice::tests {
namespace {

struct SetUp {
    Words options, variables;
    Words program = {};
    bool real = false;
};

const SetUp kHealthy[] = {
    {{"--fake=1xh200"}, {}},
    {{"--fake=4xh200", "--fraction=0.4"}, {}, {"/bin/sh", "-c", "true"}},
    {{"--fake=2xa100-40g,1xt4", "--limit=0=4GiB,2=1GiB"}, {}},
    {{"--fake=1xlaptop-2g", "--limit=1GiB"}, {}, {"python3", "-c", "pass"}},
    {{"--fake=4xh200", "--gpus=3,2", "--limit=3=4GiB"}, {}},
    {{"--fake=4xb200", "--gpus=any", "--fraction=40%"}, {}},
    {{"--fake=1xh100", "--split=0=4"}, {}, {CUSLICE_TEST_DEVICE_CODE_SHARED}},
    {{"--fake=2xl4", "--split=1=8GiB+rest"}, {}},
    {{"--fake=1xrtx3090", "--group=lab", "--group-limit=8GiB"}, {}},
    {{"--fake=2xl4", "--share=0=30%,1=70%", "--share-cap=80%", "--share-quantum=20ms"}, {}},
    {{"--fake=1xrtx4090", "--allocator=growth", "--idle-release=10s"}, {}},
    {{"--fake=1xv100-16g", "--allocator=prealloc", "--limit=2GiB"}, {}},
    {{"--fake=1xgb10"}, {}, {"/usr/bin/env"}},
    {{"--fake=1xa100-80g", "--per-process", "--limit=4GiB"}, {}},
    {{}, {"CUSLICE_FAKE=2xt4", "CUSLICE_LIMIT=4GiB", "CUDA_VISIBLE_DEVICES=1"}},
    {{}, {"CUSLICE_FAKE=1xt4", "CUDA_DEVICE_MEMORY_LIMIT=2g", "CUDA_DEVICE_SM_LIMIT=100"}},
    {{"--fake=1xh200"}, {"LD_PRELOAD=" CUSLICE_TEST_HARMLESS}},
    {{}, {}, {"/bin/true"}, true},
    {{"--limit=0=1GiB"}, {}, {CUSLICE_TEST_DEVICE_CODE_STATIC}, true},
    {{"--split=0=2"}, {}, {}, true},
    {{"--gpus=0", "--wait=10m"}, {"CUDA_VISIBLE_DEVICES=0"}, {}, true},
};

}  // namespace

TEST_CASE("doctor finds nothing in twenty healthy set-ups") {
    CHECK(std::size(kHealthy) >= 20);
    for (const SetUp& one : kHealthy) {
        Scene scene;
        one.real ? scene.driver() : scene.own_fake();
        for (const std::string& variable : one.variables)
            scene.set(variable);
        Words options = one.options;
        if (!one.program.empty())
            options = with(with(options, {"--"}), one.program);
        CHECK(scene.found(options) == Words());
        const Outcome outcome = run(scene.command(options), scene.environment(), scene.folder().path());
        INFO(outcome.out);
        CHECK(outcome.err.empty());
        CHECK(outcome.exit_code == 0);
    }
}

TEST_CASE("doctor prints a paragraph for each finding, in lines of at most 80 columns") {
    Scene scene;
    scene.set("LD_PRELOAD=/nowhere/libother.so");
    const Outcome outcome = run(scene.command({"--", "no-such-program"}), scene.environment(), scene.folder().path());
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.out.find("\nproblem  program-missing: no-such-program: command not found. Name it with its\n"
                           "         folder, or put that into PATH.\n") != std::string::npos);
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
        INFO(line);
        const bool one_word = line.find(' ', line.find_first_not_of(' ')) == line.npos;
        CHECK((line.size() <= 80 || one_word));
        CHECK((line.starts_with("ok       ") || line.starts_with("warning  ") || line.starts_with("problem  ") ||
               line.starts_with("         ")));
    }
}

TEST_CASE("ld.so's line about a library that it can't preload is printed once") {
    for (const std::string& library : {std::string("/nowhere/libother.so"), std::string("libof-no-package.so")}) {
        Scene scene;
        scene.set("LD_PRELOAD=" + library);
        const Outcome outcome = run(scene.command({"--", "/bin/true"}), scene.environment(), scene.folder().path());
        INFO(outcome.err);
        const std::string line = "object '" + library + "' from LD_PRELOAD cannot be preloaded";
        const size_t at = outcome.err.find(line);
        REQUIRE(at != outcome.err.npos);
        CHECK(outcome.err.find(line, at + 1) == outcome.err.npos);
    }
}

TEST_CASE("doctor within cuslice run judges what the program has, and leaves nothing behind") {
    Scene scene;
    const Words inner = {kTree + "/bin/cuslice", "doctor", "--", "/bin/true"};
    const Words outer = {kTree + "/bin/cuslice",     "run", "--fake=2xt4", "--limit=1GiB",
                         "--dir=" + scene.sharing(), "--"};
    const Outcome outcome = run(with(outer, inner), scene.environment(), scene.folder().path());
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    Scene other;
    CHECK(other.found().empty());
    CHECK(std::filesystem::is_empty(other.sharing()));
}

TEST_CASE("doctor refuses a command line that run would refuse, and needs no program") {
    Scene scene;
    const Outcome outcome = run(scene.command({"--nothing"}), scene.environment());
    CHECK(outcome.exit_code == 64);
    CHECK(outcome.out.empty());
}

}  // namespace cuslice::tests
