// SPDX-License-Identifier: Apache-2.0
// A cuslice run within a job: one that another cuslice run began, and one that a scheduler made by variables alone. The
// books of the GPU say what is held.
#include <signal.h>

#include "tests/preload/machine.h"

namespace cuslice::tests {
namespace {

const Words kJob{"CUSLICE_JOB=batch", "CUSLICE_LIMIT=800MiB"};

std::string bytes(uint64_t count) { return std::to_string(count); }

// As much as `guest` is given on a GPU.
void fill(Guest& guest, const std::string& gpu = "0") {
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(guest.code("retain " + gpu) == kSuccess);
    REQUIRE(guest.code("current " + gpu) == kSuccess);
    CHECK(guest.code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
}

// True if `held` is as much as a filled slice of this many MiB holds: all but what is kept free.
bool fills(uint64_t held, uint64_t slice) {
    UNSCOPED_INFO("holds " << held / kMiB << " of " << slice << " MiB");
    return held <= slice * kMiB && held > (slice - 100) * kMiB;
}

}  // namespace

TEST_CASE("a nested run keeps to the outer job's limit, whatever it asks for") {
    const Machine machine("1xlaptop-2g");
    const Words inner = machine.launch({"--limit", "1800MiB"}, Guest::route("linked"));
    const auto guest = machine.start({"--limit", "800MiB"}, {}, inner);
    fill(*guest);
    CHECK(fills(machine.held(*guest, 0).used, 800));
}

TEST_CASE("launchers within a job that a scheduler made share its limit, whatever they ask for") {
    const Machine machine("1xlaptop-2g");
    const auto first = machine.start({"--limit", "1500MiB"}, kJob);
    fill(*first);
    CHECK(fills(machine.held(*first, 0).used, 800));
    CHECK(first->complaints().at(0).find("800.0 MiB") != std::string::npos);
    const auto second = machine.start({}, kJob);
    REQUIRE(second->code("init") == kSuccess);
    CHECK(second->code("retain 0") == kOutOfMemory);
    CHECK(machine.held(*second, 0).used == 0);
    first->kill(SIGKILL);
    first->finish();
    fill(*second);
    CHECK(fills(machine.held(*second, 0).used, 800));
}

TEST_CASE("who comes into a scheduler's job after a launcher keeps to the same limit") {
    const Machine machine("1xlaptop-2g");
    const auto launched = machine.start({"--limit", "400MiB"}, kJob);
    fill(*launched);
    CHECK(machine.held(*launched, 0).used <= 400 * kMiB);
    Guest direct(Guest::route("linked"),
                 sliced(machine.fake, machine.books.path(), joined(kJob, {"CUSLICE_HEADROOM=16MiB"})));
    fill(direct);
    const uint64_t together = machine.held(*launched, 0).used + machine.held(direct, 0).used;
    CHECK(fills(together, 800));
}

TEST_CASE("of three jobs within each other each limit holds, on GPUs that the outer ones have not opened, too") {
    const Machine machine("2xlaptop-2g");
    const Words inner = machine.launch({"--limit", "1800MiB"}, Guest::route("linked"));
    const auto guest = machine.start({"--limit", "0=500MiB,1=1900MiB"},
                                     {"CUSLICE_JOB=batch", "CUSLICE_LIMIT=0=1000MiB,1=600MiB"}, inner);
    fill(*guest, "0");
    CHECK(fills(machine.held(*guest, 0).used, 500));
    fill(*guest, "1");
    CHECK(fills(machine.held(*guest, 1).used, 600));
}

TEST_CASE("a job without a limit bounds nothing that is started in it") {
    const Machine machine("1xlaptop-2g");
    const Words job{"CUSLICE_JOB=batch"};
    const auto guest = machine.start({"--limit", "1500MiB"}, job), beside = machine.start({"--limit", "300MiB"}, job);
    fill(*guest);
    CHECK(machine.held(*guest, 0).used > 1400 * kMiB);
    fill(*beside);
    CHECK(machine.held(*beside, 0).used > 200 * kMiB);
}

}  // namespace cuslice::tests
