// SPDX-License-Identifier: Apache-2.0
// Work that waits for other work on the GPU, of the same process, of another one of its job, or of another job; and
// jobs of several GPUs.
#include "tests/preload/turns.h"

namespace cuslice::tests {

// Launches are bounded while there is another job.
TEST_CASE("a kernel that waits for a later launch of its own process ends, whatever other jobs do") {
    const std::string others = GENERATE("idle", "busy"), version = GENERATE("580.95.05", "535.183.06");
    CAPTURE(others, version);
    const Folder files;
    const TimeShared shared(of_version(files, version));
    const Worker one = shared.worker(), other = shared.worker();
    check_launches(*other);
    REQUIRE(one->code("stream t") == kSuccess);
    if (others == "busy")
        REQUIRE(other->code("aside runs 1 500 c ms s") == kSuccess);
    REQUIRE(one->code("run c wait s w") == kSuccess);
    CHECK(one->ask("runs 1 50 c ms t") == "0 0");
    CHECK(one->code("set w 1 t") == kSuccess);
    CHECK(one->code("settle s") == kSuccess);
    if (others == "busy")
        CHECK(other->ask("joined") == "0 0");
}

namespace {

// Each one's word, and the other's.
void exchange_words(Guest& one, Guest& other) {
    REQUIRE(one.code("ipcopen o " + split_words(other.ask("ipcget w")).at(1)) == kSuccess);
    REQUIRE(other.code("ipcopen o " + split_words(one.ask("ipcget w")).at(1)) == kSuccess);
    for (Guest* each : {&one, &other})
        REQUIRE(each->code("stream t") == kSuccess);
}

}  // namespace

TEST_CASE("two processes of one job that wait for each other's fill on the GPU both end, and nothing is said") {
    const TimeShared shared;
    const Worker one = shared.worker(), other = shared.sibling(*one);
    exchange_words(*one, *other);
    occupy(*one);
    occupy(*other);
    CHECK(one->code("set o 1 t") == kSuccess);
    CHECK(other->code("set o 1 t") == kSuccess);
    CHECK(one->code("settle s") == kSuccess);
    CHECK(other->code("settle s") == kSuccess);
    CHECK(one->complaints() == Words());
    CHECK(other->complaints() == Words());
}

// Their turn may be over when only one of them has launched: then its kernel ends in the next one.
TEST_CASE("two processes of one job that wait for each other's fill both end beside another job that is never idle") {
    const TimeShared shared;
    const Worker one = shared.worker(), other = shared.sibling(*one), busy = shared.worker();
    exchange_words(*one, *other);
    REQUIRE(busy->code("aside runs 2 300 c ms -") == kSuccess);
    for (Guest* each : {one.get(), other.get()})
        CHECK(each->code("run c wait s w") == kSuccess);
    for (Guest* each : {one.get(), other.get()})
        CHECK(each->code("set o 1 t") == kSuccess);
    CHECK(one->code("settle s") == kSuccess);
    CHECK(other->code("settle s") == kSuccess);
    CHECK(busy->ask("joined") == "0 0");
}

TEST_CASE("two jobs that wait for each other's fill on the GPU are told so, and both end") {
    const TimeShared shared;
    const Worker one = shared.worker(), other = shared.worker();
    exchange_words(*one, *other);
    occupy(*one);
    begin(*other, "run c wait s w");
    CHECK(one->code("query s") == CUDA_ERROR_NOT_READY);
    done_at(*other);
    CHECK(lines_of(*other, passed_by(one->pid(), "has work on the GPU that does not end")) == 1);
    CHECK(other->code("set o 1 t") == kSuccess);
    CHECK(one->code("settle s") == kSuccess);
    CHECK(one->code("set o 1 t") == kSuccess);
    CHECK(other->code("settle s") == kSuccess);
}

TEST_CASE("a job of two GPUs and jobs of one each all end") {
    const TimeShared shared("2xt4");
    const Worker both = shared.worker(), first = shared.worker(), second = shared.start();
    prepare(*both, "1", "1");
    prepare(*second, "1");
    REQUIRE(first->code("aside runs 1 100 c ms s") == kSuccess);
    REQUIRE(second->code("aside runs 1 100 c ms s") == kSuccess);
    for (int i = 0; i < 20; ++i)
        for (const std::string gpu : {"0", "1"}) {
            REQUIRE(both->code("current " + gpu) == kSuccess);
            CHECK(both->ask("runs 1 5 c" + std::string(gpu == "1" ? "1" : "") + " ms -") == "0 0");
        }
    CHECK(first->ask("joined") == "0 0");
    CHECK(second->ask("joined") == "0 0");
}

TEST_CASE("a process that comes to use a second GPU waits for its turn there, too") {
    const TimeShared shared("2xt4");
    const bool has_turn = GENERATE(false, true);
    CAPTURE(has_turn);
    const Worker grows = shared.worker(), holder = shared.start();
    prepare(*holder, "1");
    check_launches(*grows);
    check_launches(*holder);
    prepare(*grows, "1", "1");
    if (has_turn) {
        REQUIRE(grows->code("current 0") == kSuccess);
        check_launches(*grows);
        REQUIRE(grows->code("current 1") == kSuccess);
    }
    occupy(*holder);
    begin(*grows, "run c1 ms s1");
    const uint64_t freed = set_free(*holder), done = done_at(*grows);
    CHECK((done > freed || lines_of(*grows, kPassedBy) == 1));
    CHECK(holder->code("settle s") == kSuccess);
}

}  // namespace cuslice::tests
