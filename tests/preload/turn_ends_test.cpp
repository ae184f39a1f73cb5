// SPDX-License-Identifier: Apache-2.0
// Holders that don't pass their turn on, and turns that end with what they are of: a process, a context, a thread's
// wait.
#include <signal.h>
#include <sys/wait.h>

#include "tests/preload/turns.h"

namespace cuslice::tests {

TEST_CASE("a holder that is stopped is passed by and named, and goes on when it is continued") {
    const bool busy = GENERATE(false, true);
    const By by = GENERATE(By::launcher, By::preload);
    CAPTURE(busy, by == By::launcher);
    const TimeShared shared;
    const Worker holder = shared.worker({}, by), other = shared.worker({}, by);
    check_launches(*holder);
    if (busy)
        occupy(*holder);
    const int pid = holder->pid();
    REQUIRE(kill(pid, SIGSTOP) == 0);
    REQUIRE(waitpid(pid, nullptr, WUNTRACED) == pid);  // all of its threads are
    check_launches(*other);
    CHECK(lines_of(*other, passed_by(pid, "is stopped")) == 1);
    CHECK(other->complaints().size() == 1);
    REQUIRE(kill(pid, SIGCONT) == 0);
    set_free(*holder);
    check_launches(*holder);
    check_launches(*other);
    CHECK(holder->complaints() == Words());
}

TEST_CASE("a holder that is killed is passed by, which is no warning") {
    const bool busy = GENERATE(false, true);
    const TimeShared shared;
    const std::string level = GENERATE("info", "warn");
    CAPTURE(busy, level);
    const Worker holder = shared.worker(), other = shared.worker({"CUSLICE_LOG=" + level});
    check_launches(*holder);
    if (busy)
        occupy(*holder);
    const int pid = holder->pid();
    if (busy)
        begin(*other, "run c ms s");
    REQUIRE(kill(pid, SIGKILL) == 0);
    holder->finish();
    if (busy)
        done_at(*other);
    check_launches(*other);
    const unsigned said = level == "info" ? 1 : 0;
    CHECK(lines_of(*other, kPassedBy) == said);
    CHECK(lines_of(*other, passed_by(pid, "has ended")) == said);
}

TEST_CASE("a kernel that doesn't end is passed by and its process named, and both go on") {
    const By by = GENERATE(By::launcher, By::preload);
    const TimeShared shared;
    const Worker holder = shared.worker({}, by), other = shared.worker({}, by);
    occupy(*holder);
    check_launches(*other);
    CHECK(lines_of(*other, passed_by(holder->pid(), "has work on the GPU that does not end")) == 1);
    check_launches(*other);
    CHECK(other->complaints().size() == 1);
    CHECK(holder->code("query s") == CUDA_ERROR_NOT_READY);
    set_free(*holder);
    check_launches(*holder);
    CHECK(holder->complaints() == Words());
}

TEST_CASE("a forked child's launch has the driver's answer, and its parent goes on") {
    const TimeShared shared;
    const Worker parent = shared.worker(), other = shared.worker();
    Guest free(Guest::route("linked"), sliced(shared.fake, shared.books.path(), {"CUSLICE_FAKE_COST=ms*=1ms"}));
    use_device(free);
    REQUIRE(free.code("code c") == kSuccess);
    const std::string natively = free.ask("forkrun c ms -");
    CHECK(parent->ask("forkrun c ms s") == natively);  // before the first launch
    check_launches(*parent);
    check_launches(*other);
    CHECK(parent->ask("forkrun c ms s") == natively);
    occupy(*other);
    CHECK(parent->ask("forkrun c ms s") == natively);
    set_free(*other);
    check_launches(*parent);
    check_launches(*other);
    CHECK(parent->complaints() == Words());
    CHECK(other->complaints() == Words());
}

TEST_CASE("a program that another one takes the place of passes its turn on, and so does one that ends") {
    const bool busy = GENERATE(false, true);
    const std::string end = GENERATE("exec", "finish");
    CAPTURE(busy, end);
    const TimeShared shared;
    const Worker holder = shared.worker(), other = shared.worker();
    check_launches(*holder);
    if (busy)
        occupy(*holder);
    if (end == "exec") {
        REQUIRE(holder->code("exec linked") == kSuccess);
        REQUIRE(holder->code("init") == kSuccess);
        prepare(*holder);
    } else {
        CHECK(holder->finish() == 0);
    }
    check_launches(*other);
    if (end == "exec")
        check_launches(*holder);
    CHECK(other->complaints() == Words());
}

TEST_CASE("a context that ends in its turn takes nothing of the turn with it") {
    const std::string end = GENERATE("destroy x", "reset 0", "release 0");
    CAPTURE(end);
    const TimeShared shared;
    const Worker one = shared.worker(), other = shared.worker();
    check_launches(*other);
    if (end == "destroy x") {
        REQUIRE(one->code("create x 0") == kSuccess);
        REQUIRE(one->code("code d") == kSuccess);
        CHECK(one->ask("runs 1 20 d ms -") == "0 0");
    } else {
        CHECK(one->ask("runs 1 20 c ms -") == "0 0");
    }
    CHECK(one->code(end) == kSuccess);
    check_launches(*other);
    prepare(*one);
    check_launches(*one);
    check_launches(*other);
    CHECK(one->complaints() == Words());
    CHECK(other->complaints() == Words());
}

TEST_CASE(
    "a context that ends while a thread waits to launch in it leaves an error to that, and later launches go on") {
    const std::string end = GENERATE("destroy x", "reset 0");
    CAPTURE(end);
    const TimeShared shared;
    const Worker holder = shared.worker(), one = shared.worker();
    check_launches(*one);
    REQUIRE(one->code("create x 0") == kSuccess);
    REQUIRE(one->code("code d") == kSuccess);
    REQUIRE(one->code(end == "destroy x" ? "current x" : "current 0") == kSuccess);
    occupy(*holder);
    REQUIRE(one->code(end == "destroy x" ? "aside run d ms -" : "aside run c ms -") == kSuccess);
    CHECK(one->code(end) == kSuccess);
    set_free(*holder);
    CHECK(one->code("joined") != kSuccess);
    check_launches(*holder);
    prepare(*one);
    check_launches(*one);
    check_launches(*holder);
}

TEST_CASE("a launch that the program leaves while it waits holds nothing, and later ones go on") {
    const By by = GENERATE(By::launcher, By::preload);
    const bool first_launch = GENERATE(false, true);
    CAPTURE(by == By::launcher, first_launch);
    const TimeShared shared;
    const Worker leaves = shared.worker({}, by), holder = shared.worker({}, by);
    if (!first_launch)
        check_launches(*leaves);
    check_launches(*holder);
    occupy(*holder);
    CHECK(leaves->ask("leaverun c ms s") == "0 1");
    CHECK(leaves->ask("leaverun c ms s") == "0 1");
    set_free(*holder);
    for (int i = 0; i < 5; ++i) {
        check_launches(*leaves);
        check_launches(*holder);
    }
}

TEST_CASE("a launch that the program leaves inside the driver holds nothing either") {
    const TimeShared shared;
    const Worker leaves = shared.worker({"CUSLICE_FAKE_INJECT=delay:cuLaunchKernel=1ms"}), other = shared.worker();
    check_launches(*other);
    for (int i = 0; i < 3; ++i) {
        CHECK(leaves->ask("leavelaunch c ms") == "0 1");
        check_launches(*other);
        check_launches(*leaves);
    }
    CHECK(leaves->complaints() == Words());
    CHECK(other->complaints() == Words());
}

}  // namespace cuslice::tests
