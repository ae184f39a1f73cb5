// SPDX-License-Identifier: Apache-2.0
// Processes of one ledger that are killed at any time: nothing of theirs is left behind, and nothing is given twice.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>

#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/rounds.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

// Opening, joining, taking back, reserving, giving back: killed in any of it.
TEST_CASE("processes killed at random while they come and take: the survivor's count is exact") {
    const int kills = rounds(400, 10'000);
    const LedgerFolder folder;
    Place survivor;
    REQUIRE(survivor.open(folder));
    REQUIRE(survivor.join("lab", 8 * kGiB) == Joined::yes);
    REQUIRE(survivor.membership.reserve(kGiB, 0, nullptr));
    const auto live = [&] {
        std::mt19937 random(static_cast<unsigned>(getpid()));
        Place place;
        if (!place.open(folder) || place.join("lab", 8 * kGiB) != Joined::yes)
            _exit(1);
        for (;;) {
            const uint64_t bytes = random() % (3 * kGiB);
            if (!place.membership.reserve(bytes, 0, nullptr)) {
                place.ledger.take_back_dead();
                continue;
            }
            if (place.membership.used() > 8 * kGiB)
                _exit(2);
            if (random() % 4)
                place.membership.change(-static_cast<int64_t>(bytes));
        }
    };
    std::mt19937 random(1);
    pid_t workers[3] = {};
    const auto start = [&](pid_t& worker) {
        worker = fork();
        if (worker == 0)
            live();
    };
    for (pid_t& worker : workers)
        start(worker);
    int ended = 0, wrong = 0;
    for (int i = 0; i < kills; i++) {
        usleep(random() % 1500);
        pid_t& worker = workers[random() % 3];
        ::kill(worker, SIGKILL);
        int status = 0;
        waitpid(worker, &status, 0);
        ended += WIFEXITED(status);
        survivor.ledger.take_back_dead();
        if (i % 20 == 0) {  // nobody else: all that is left is our own
            for (pid_t& other : workers)
                ::kill(other, SIGKILL), waitpid(other, nullptr, 0);
            survivor.ledger.take_back_dead();
            wrong += survivor.membership.used() != kGiB;
            for (pid_t& other : workers)
                start(other);
        } else {
            start(worker);
        }
    }
    for (pid_t& worker : workers)
        ::kill(worker, SIGKILL), waitpid(worker, nullptr, 0);
    survivor.ledger.take_back_dead();
    CHECK(ended == 0);
    CHECK(wrong == 0);
    CHECK(survivor.membership.used() == kGiB);
    CHECK(survivor.membership.held() == kGiB);
}

// Between a claim and its answer nobody has a lock.
TEST_CASE("processes killed at random while they reserve: no reservation is left behind, and none is given twice") {
    const int kills = rounds(200, 5000);
    const LedgerFolder folder;
    const auto live = [&](unsigned which) {
        // Two of them want the same job, and three jobs don't fit.
        const std::string name = "job" + std::to_string(which % 3);
        for (;;) {
            Place place;
            if (!place.open(folder))
                _exit(1);
            const Joined joined = place.join(name.c_str(), 6 * kGiB, 6 * kGiB, AccountKind::job);
            if (joined == Joined::unavailable)
                _exit(2);
            if (place.committed.promised > 2 * 6 * kGiB)
                _exit(3);
            place.ledger.close();
        }
    };
    std::mt19937 random(3);
    pid_t workers[4] = {};
    const auto start = [&](unsigned which) {
        workers[which] = fork();
        if (workers[which] == 0)
            live(which);
    };
    for (unsigned i = 0; i < 4; i++)
        start(i);
    int ended = 0;
    for (int i = 0; i < kills; i++) {
        usleep(random() % 1500);
        const unsigned which = random() % 4;
        ::kill(workers[which], SIGKILL);
        int status = 0;
        waitpid(workers[which], &status, 0);
        if (WIFEXITED(status))
            UNSCOPED_INFO("ended with " << WEXITSTATUS(status)), ended++;
        start(which);
    }
    for (pid_t& worker : workers)
        ::kill(worker, SIGKILL), waitpid(worker, nullptr, 0);
    CHECK(ended == 0);
    Place all;
    REQUIRE(all.open(folder));
    CHECK(all.join("all", kCapacity, kCapacity, AccountKind::job) == Joined::yes);
}

TEST_CASE("many short processes leave nothing behind") {
    const LedgerFolder folder;
    Child watcher(member(folder));
    REQUIRE(watcher.ask(Step::join) == Answer::joined);
    const int count = rounds(300, 10'000);
    for (int i = 0; i < count; i++) {
        Child one(member(folder));
        REQUIRE(one.ask(Step::join) == Answer::joined);
        REQUIRE(one.ask(Step::reserve_5_gib) == Answer::reserved);
        if (i % 2)
            one.kill();
    }
    watcher.ask(Step::take_back_dead);
    CHECK(watcher.ask(Step::read_total) == gib(0));
    Place place;
    REQUIRE(place.open(folder));
    Watched watched;
    REQUIRE(place.ledger.watch(AccountKind::group, "lab", &watched));
    CHECK(watched.count == 1);
    CHECK(watched.used == 0);
}
