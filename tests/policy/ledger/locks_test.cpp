// SPDX-License-Identifier: Apache-2.0
// How long a lock of the ledger is waited for, where the process that waits does not get to run meanwhile.
#include "policy/ledger/locks.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "policy/base/kernel_clock.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice;
using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr unsigned kMillisecond = 1'000'000;  // nanoseconds
constexpr unsigned kStopped = 800;            // milliseconds: longer than any deadline here
// A stop that comes a moment before or after the sleep that it is meant for shows nothing.
constexpr int kTries = 5;

// Step of a child that opens a ledger in which it takes back the dead later.
constexpr char kOpen = 'o';

// Has the kernel stop this process a little later.
void stop_soon() {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGSTOP;
    timer_t timer{};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        _exit(9);
    itimerspec when{};
    when.it_value.tv_nsec = 50 * kMillisecond;
    if (timer_settime(timer, 0, &when, nullptr) != 0)
        _exit(9);
}

// Waits until the process is stopped, and lets it go on when its deadline would have passed.
void go_on_later(pid_t process) {
    int status = 0;
    REQUIRE(waitpid(process, &status, WUNTRACED) == process);
    REQUIRE(WIFSTOPPED(status));
    usleep(kStopped * 1000);
    REQUIRE(kill(process, SIGCONT) == 0);
}

}  // namespace

TEST_CASE("the time for which a process was stopped in its sleep does not count towards its deadline") {
    const bool for_a_word = GENERATE(false, true);
    CAPTURE(for_a_word);
    bool left_out = false;
    for (int i = 0; i < kTries && !left_out; i++) {
        const pid_t child = fork();
        if (child == 0) {
            Deadline deadline(500);
            stop_soon();
            const uint64_t start = kernel_clock(CLOCK_MONOTONIC);
            const int32_t word = 1;
            while (kernel_clock(CLOCK_MONOTONIC) - start < uint64_t{kStopped} * kMillisecond)
                if (for_a_word ? deadline.pause_for(word, 1, 80 * kMillisecond) : !deadline.pause())
                    _exit(1);
            _exit(deadline.passed());
        }
        go_on_later(child);
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        REQUIRE(WIFEXITED(status));
        REQUIRE(WEXITSTATUS(status) <= 1);
        left_out = WEXITSTATUS(status) == 0;
    }
    CHECK(left_out);
}

TEST_CASE("a process that is never stopped waits no longer than its deadline") {
    Deadline deadline(100);
    const uint64_t start = kernel_clock(CLOCK_MONOTONIC);
    while (deadline.pause()) {
    }
    CHECK(deadline.passed());
    CHECK(kernel_clock(CLOCK_MONOTONIC) - start >= uint64_t{100} * kMillisecond);
}

TEST_CASE("who waits for a word knows whether it may have changed or only time has passed") {
    Deadline deadline(60'000);
    const int32_t word = 1;
    CHECK_FALSE(deadline.pause_for(word, 1, kMillisecond));
    CHECK(deadline.pause_for(word, 2, kMillisecond));  // it had another value before the wait
    CHECK_FALSE(deadline.passed());
}

TEST_CASE("a lock is still waited for by a process that was stopped for longer than its deadline") {
    const LedgerFolder folder;
    {
        Place maker;
        REQUIRE(maker.open(folder));
    }
    bool had = false;
    for (int i = 0; i < kTries && !had; i++) {
        Place place;
        Child waiter([&](char step) {
            if (step == kOpen)
                return place.open(folder) ? Answer::done : Answer::not_opened;
            stop_soon();
            LedgerError why;
            place.ledger.take_back_dead(&why);
            return why.text[0] ? Answer::refused : Answer::done;
        });
        REQUIRE(waiter.ask(kOpen) == Answer::done);
        auto holder = std::make_unique<Keeper>(folder);
        REQUIRE(waiter.tell(Step::take_back_dead));
        go_on_later(waiter.pid());
        usleep(20'000);  // it looks once more before the holder goes on
        holder.reset();
        had = waiter.hear() == Answer::done;
    }
    CHECK(had);
}
