// SPDX-License-Identifier: Apache-2.0
// Launches that wait for their job's turn, and calls that don't.
#include "tests/preload/turns.h"

#include "tests/json.h"
#include "tests/preload/lookups.h"

namespace cuslice::tests {
namespace {

// Where the machine was so busy that the holder was passed by, it says nothing, and is tried again.
enum class Waited { no, yes, passed_by };

Waited tries(const std::string& command, By by) {
    const TimeShared shared;
    const Worker holder = shared.worker({}, by), other = shared.worker({}, by);
    REQUIRE(other->code("kernelgraph g c ms") == kSuccess);
    occupy(*holder);
    begin(*other, command);
    const uint64_t freed = set_free(*holder), done = done_at(*other);
    CHECK(holder->code("settle s") == kSuccess);
    CHECK(other->code("sync") == kSuccess);
    CHECK(holder->complaints() == Words());
    if (lines_of(*other, kPassedBy) != 0)
        return Waited::passed_by;
    CHECK(other->complaints() == Words());
    return done > freed ? Waited::yes : Waited::no;
}

}  // namespace

TEST_CASE("what starts work waits while another job's kernel runs in its turn") {
    const std::string command =
        GENERATE("run c ms s", "run c ms -", "configured c ms s", "cooperative c ms s", "set w 1 s", "launch g");
    const By by = GENERATE(By::launcher, By::preload);
    CAPTURE(command, by == By::launcher);
    Waited waited = Waited::passed_by;
    for (int i = 0; i < 10 && waited == Waited::passed_by; ++i)
        waited = tries(command, by);
    CHECK(waited == Waited::yes);
}

// A call that waited would close the holder's turn, and would have to pass it by.
TEST_CASE("what starts nothing on multiprocessors goes on meanwhile") {
    const By by = GENERATE(By::launcher, By::preload);
    const bool launched_before = GENERATE(false, true);
    CAPTURE(by == By::launcher, launched_before);
    const TimeShared shared;
    const Worker other = shared.worker({}, by);
    if (launched_before) {
        REQUIRE(other->code("run c ms s") == kSuccess);
        REQUIRE(other->code("settle s") == kSuccess);
    }
    const Worker holder = shared.worker({}, by);
    occupy(*holder);
    for (const char* command : {"poke w 5", "alloc more 1000000", "alloc later 1000000 async", "event e", "record e",
                                "await e", "stream t", "work t", "settle t", "free more"}) {
        CAPTURE(command);
        CHECK(other->code(command) == kSuccess);
    }
    CHECK(other->ask("worked") == "0 1");
    REQUIRE(other->code("begin s relaxed") == kSuccess);
    CHECK(other->code("run c ms s") == kSuccess);
    CHECK(other->code("cooperative c ms s") == kSuccess);
    CHECK(other->code("set w 1 s") == kSuccess);
    CHECK(other->code("end s") == kSuccess);
    CHECK(holder->code("query s") == CUDA_ERROR_NOT_READY);
    CHECK(other->complaints() == Words());
    set_free(*holder);
    CHECK(holder->code("settle s") == kSuccess);
    CHECK(holder->complaints() == Words());
}

TEST_CASE("a holder whose queue is empty passes the lease on, and nothing is said") {
    const By by = GENERATE(By::launcher, By::preload);
    CAPTURE(by == By::launcher);
    const TimeShared shared;
    const Worker one = shared.worker({}, by), other = shared.worker({}, by);
    for (int i = 0; i < 10; ++i)
        for (Guest* job : {one.get(), other.get()}) {
            CHECK(job->ask("runs 1 3 c ms s") == "0 0");
            CHECK(job->code("settle s") == kSuccess);
        }
    CHECK(one->complaints() == Words());
    CHECK(other->complaints() == Words());
}

TEST_CASE("threads of two jobs that launch at once all end, and so does a job without a share") {
    const TimeShared shared;
    const Worker one = shared.worker(), other = shared.worker({}, By::preload);
    Guest free(Guest::route("linked"), sliced(shared.fake, shared.books.path(), {"CUSLICE_FAKE_COST=ms*=1ms"}));
    use_device(free);
    REQUIRE(free.code("code c") == kSuccess);
    for (Guest* job : {one.get(), other.get()})
        REQUIRE(job->code("aside runs 4 50 c ms -") == kSuccess);
    CHECK(free.ask("runs 2 50 c ms -") == "0 0");
    CHECK(one->ask("joined") == "0 0");
    CHECK(other->ask("joined") == "0 0");
    CHECK(one->code("sync") == kSuccess);
    CHECK(other->code("sync") == kSuccess);
}

TEST_CASE("the share of a job that is running changes, and it goes on") {
    const TimeShared shared;
    const Worker one = shared.worker(), other = shared.worker();
    for (Guest* job : {one.get(), other.get()}) {
        REQUIRE(job->code("run c ms s") == kSuccess);
        REQUIRE(job->code("aside runs 1 100 c ms s") == kSuccess);
    }
    const std::string name = one->ask("getenv CUSLICE_JOB");
    const Words environment = plain({"CUSLICE_FAKE_DIR=" + shared.books.path(), "CUSLICE_DIR=" + shared.leases});
    const Outcome set = run({kLaunch, "set", "--fake", shared.fake, "--job",
                             name.substr(1, name.find_first_of("@,", 1) - 1), "--share", "80%"},
                            environment);
    CAPTURE(set.err, name);
    CHECK(set.exit_code == 0);
    const Outcome ps = run({kLaunch, "ps", "--json", "--fake", shared.fake}, environment);
    CHECK(ps.out.find("\"share\": 80") != std::string::npos);
    CAPTURE(ps.out);
    CHECK(one->ask("joined") == "0 0");
    CHECK(other->ask("joined") == "0 0");
}

TEST_CASE("a launch that isn't listed goes on, and is said once") {
    const TimeShared shared;
    const By by = GENERATE(By::launcher, By::preload);
    CAPTURE(by == By::launcher);
    const Worker holder = shared.worker({}, by), other = shared.worker({"CUSLICE_FAKE_NEWER=1"}, by);
    occupy(*holder);
    CHECK(other->code("newrun c ms s") == kSuccess);
    CHECK(other->code("newrun c ms s") == kSuccess);
    CHECK(holder->code("query s") == CUDA_ERROR_NOT_READY);
    CHECK(lines_of(*other, "the driver has cuLaunchFakeKernel, in a form that this version of cuslice does not know") ==
          1);
    CHECK(other->complaints().size() == 1);
    set_free(*holder);
}

}  // namespace cuslice::tests
