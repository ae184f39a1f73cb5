// SPDX-License-Identifier: Apache-2.0
// Shares of time on drivers that can't mark their work, and leases that can't be had or are written over: the program
// runs.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/preload/places.h"
#include "tests/preload/turns.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

std::string lease_in(const TimeShared& shared) { return shared.leases + "/" + std::to_string(geteuid()) + ".1.lease"; }

void take_turns(Guest& one, Guest& other) {
    for (int i = 0; i < 5; ++i)
        for (Guest* each : {&one, &other}) {
            CHECK(each->ask("runs 1 3 c ms s") == "0 0");
            CHECK(each->code("settle s") == kSuccess);
        }
}

}  // namespace

TEST_CASE("drivers that can't mark the work of a context have it waited for, and captures go on") {
    const Folder files;
    const std::string version = GENERATE("450.248.02", "470.256.02", "535.183.06");
    CAPTURE(version);
    const TimeShared shared(of_version(files, version));
    const Worker one = shared.worker(), other = shared.worker();
    take_turns(*one, *other);
    REQUIRE(one->code("begin s relaxed") == kSuccess);
    CHECK(one->code("run c ms s") == kSuccess);
    CHECK(one->code("run c ms -") == kSuccess);
    CHECK(other->ask("runs 1 3 c ms s") == "0 0");
    CHECK(one->code("end s") == kSuccess);
    take_turns(*one, *other);
    CHECK(one->complaints() == Words());
    CHECK(other->complaints() == Words());
}

// As those before CUDA 10.1, whose captures have no modes.
TEST_CASE("where nothing can be waited for either, each job has its turn until that is over") {
    const Folder files;
    const TimeShared shared(of_version(files, "450.248.02"));
    const Words no_modes{"CUSLICE_FAKE_INJECT=cuThreadExchangeStreamCaptureMode:*=801"};
    const Worker one = shared.worker(no_modes), other = shared.worker(no_modes);
    for (Guest* each : {one.get(), other.get(), one.get()})
        CHECK(each->ask("runs 1 3 c ms s") == "0 0");
    CHECK(one->complaints() == Words());
    CHECK(other->complaints() == Words());
}

TEST_CASE("without a folder for leases, or a file in it, the program runs and one line says so") {
    const std::string what = GENERATE("no folder", "a folder's name");
    CAPTURE(what);
    TimeShared shared;
    if (what == "no folder")
        shared.leases = "/proc/nowhere";
    else
        std::filesystem::create_directories(lease_in(shared) + "/sub");
    const Worker one = shared.worker({}, By::preload);
    CHECK(one->ask("runs 2 10 c ms s") == "0 0");
    CHECK(one->code("settle s") == kSuccess);
    CHECK(lines_of(*one, kNotShared) == 1);
    CHECK(one->complaints().size() == 1);
}

TEST_CASE("a program that can start no thread runs, and one line says that its time is not shared") {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime starts a thread of its own");
    const TimeShared shared;
    const Worker one = shared.start(), other = shared.worker();
    constexpr uint64_t kTooLong = uint64_t{1} << 52;  // more than a process has addresses
    if (one->ask("stacks " + std::to_string(kTooLong)) != "0")
        return skip("the limit of stacks can't be raised here");
    REQUIRE(one->code("exec linked") == kSuccess);
    REQUIRE(one->code("init") == kSuccess);
    prepare(*one);
    occupy(*other);
    check_launches(*one);
    CHECK(other->code("query s") == CUDA_ERROR_NOT_READY);
    set_free(*other);
    check_launches(*one);
    check_launches(*other);
    CHECK(lines_of(*one, kNotShared + ": no thread can be started that passes the lease on") == 1);
    CHECK(one->complaints().size() == 1);
    CHECK(other->complaints() == Words());
}

TEST_CASE("a file that is no lease is put aside before the first launch") {
    const TimeShared shared;
    std::ofstream(lease_in(shared)) << "garbage";
    const Worker one = shared.worker(), other = shared.worker();
    take_turns(*one, *other);
    CHECK(one->complaints() == Words());
    CHECK(other->complaints() == Words());
}

TEST_CASE("a lease that is written over or removed holds nobody up") {
    const std::string what = GENERATE("written over", "removed");
    CAPTURE(what);
    const TimeShared shared;
    const Worker one = shared.worker(), other = shared.worker();
    take_turns(*one, *other);
    const std::string path = lease_in(shared);
    if (what == "removed") {
        REQUIRE(unlink(path.c_str()) == 0);
    } else {
        const std::string garbage(std::filesystem::file_size(path), '\xff');
        std::fstream(path, std::ios::in | std::ios::out) << garbage;
    }
    take_turns(*one, *other);
    for (Guest* each : {one.get(), other.get()}) {
        CHECK(lines_of(*each, kOutOfTurn) <= 1);
        CHECK(each->complaints().size() == lines_of(*each, kOutOfTurn));
    }
    const Worker third = shared.worker();
    take_turns(*third, *one);
}

}  // namespace cuslice::tests
