// SPDX-License-Identifier: Apache-2.0
// The launcher asks NVML about the machine, and the driver only for what NVML can't tell. A driver that doesn't start
// shows which is which: a call that still works didn't need it.
#include <chrono>

#include "tests/catch.h"
#include "tests/preload/machine.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

const std::string kNoDriver = "CUSLICE_FAKE_INJECT=cuInit:*=999";

// Processes that `ps` lists while a job with these options runs. The job is that `ps` itself.
Json reserved(const Machine& machine, const Words& options, const Words& more) {
    const Words look{kLaunch, "ps", "--json", "--fake", machine.fake};
    const Outcome outcome = run(machine.launch(options, look), machine.outside(more));
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return Json::parse(outcome.out)["processes"];
}

std::string error_of(const Machine& machine, const Words& options, const Words& more) {
    return run(machine.launch(options, {"/bin/true"}), machine.outside(more)).err;
}

}  // namespace

TEST_CASE("a slice is reserved without a driver's start") {
    const Machine one("1xt4"), two("2xt4");
    const auto rows = reserved(one, {"--fraction", "0.4"}, {kNoDriver});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["gpu"] == one.uuids[0]);
    Guest guest(Guest::route("linked"), raw("1xt4", one.books.path()));
    REQUIRE(guest.code("init") == kSuccess);
    // The same number that a program computes, of cuDeviceTotalMem.
    const auto in_program = one.start({"--fraction", "0.4", "--per-process"});
    REQUIRE(in_program->code("init") == kSuccess);
    CHECK(rows[0]["reserved"] == in_program->number("total 0"));
    CHECK(guest.number("total 0") * 4 / 10 == rows[0]["reserved"]);

    CHECK(reserved(two, {"--fraction", "0.4"}, {kNoDriver}).empty());
    CHECK(reserved(two, {"--fraction", "0.4", "--gpus", "1"}, {kNoDriver})[0]["gpu"] == two.uuids[1]);
    CHECK(reserved(two, {"--fraction", "0.4", "--gpus", "1,0"}, {kNoDriver}).size() == 2);
    CHECK(reserved(two, {"--fraction", "0.4"}, {kNoDriver, "CUDA_VISIBLE_DEVICES=1"})[0]["gpu"] == two.uuids[1]);
    CHECK(reserved(two, {"--fraction", "0.4"},
                   {kNoDriver, "CUDA_VISIBLE_DEVICES=" + two.uuids[1].substr(0, 12)})[0]["gpu"] == two.uuids[1]);
    CHECK(reserved(two, {"--fraction", "0.4", "--gpus", "any"}, {kNoDriver}).size() == 1);
    CHECK(error_of(two, {"--limit", "2=1GiB"}, {kNoDriver}).find("'2' names no GPU that is here") != std::string::npos);
    CHECK(error_of(two, {"--split", "1=2"}, {kNoDriver}).empty());
}

TEST_CASE("indices among GPUs of several models count in CUDA's order, which is the driver's to tell") {
    const Machine machine("t4,h100");  // CUDA's GPU 0 is the faster second one
    const Words options{"--fraction", "0.4"};
    const auto rows = reserved(machine, options, {"CUDA_VISIBLE_DEVICES=0"});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["gpu"] == machine.uuids[1]);
    CHECK(reserved(machine, options, {"CUDA_VISIBLE_DEVICES=0", kNoDriver}).empty());
    CHECK(reserved(machine, options, {"CUDA_VISIBLE_DEVICES=0", kNoDriver, "CUDA_DEVICE_ORDER=PCI_BUS_ID"})[0]["gpu"] ==
          machine.uuids[0]);
    CHECK(reserved(machine, options, {"CUDA_VISIBLE_DEVICES=" + machine.uuids[1], kNoDriver})[0]["gpu"] ==
          machine.uuids[1]);
}

TEST_CASE("cuInit and NVML's calls take as long as the machine's file says") {
    const Folder files, books;
    const std::string fake = files.write(
        "slow.toml", "[driver]\ninit-time = \"300ms\"\nnvml-time = \"100ms\"\n[[gpu]]\nprofile = \"laptop-2g\"\n");
    const auto milliseconds = [&](const std::string& line) {
        Guest guest(Guest::route("linked"), raw(fake, books.path()));
        guest.pid();
        const auto start = std::chrono::steady_clock::now();
        CHECK(guest.number(line, 0) == kSuccess);
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    };
    CHECK(milliseconds("init") >= 300);
    CHECK(milliseconds("nvml") >= 100);
}

}  // namespace cuslice::tests
