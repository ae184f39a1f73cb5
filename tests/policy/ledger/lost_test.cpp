// SPDX-License-Identifier: Apache-2.0
// Processes that lose their ledger's file, their descriptors or the program that they run: what they hold stays
// charged.
#include <sched.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "policy/ledger/accounts.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/policy/rounds.h"
#include "tests/skip.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kMiB = 1 << 20;

void lose(const LedgerFolder& folder, const std::string& how) {
    if (how == "removed")
        std::filesystem::remove(folder.file());
    if (how == "removed with its folder")
        std::filesystem::remove_all(folder.path);
    if (how == "replaced") {
        std::ofstream(folder.path + "/other") << "something else";
        std::filesystem::rename(folder.path + "/other", folder.file());
    }
    if (how == "written over") {
        std::fstream file(folder.file(), std::ios::in | std::ios::out | std::ios::binary);
        file << std::string(600, 'e');  // the header, and some accounts
    }
}

}  // namespace

TEST_CASE("whoever puts a ledger back is seen to live, whatever else was removed with it") {
    const LedgerFolder folder;
    const std::string how = GENERATE("removed", "removed with its folder", "written over");
    CAPTURE(how);
    Child a(member(folder)), b(member(folder));
    for (Child* one : {&a, &b})
        REQUIRE(one->ask(Step::join) == Answer::joined);
    lose(folder, how);
    for (Child* one : {&a, &b})
        one->ask(Step::take_back_dead);
    const Living watcher(folder);
    const Mapped mapped(folder);
    unsigned living = 0;
    for (const Member& member : mapped.file->members)
        if (member.state.load() == MemberState::live) {
            CHECK(life_of(watcher.where, member.presence) == Life::lives);
            living++;
        }
    CHECK(living == 2);
}

TEST_CASE("a ledger that was removed takes no room once its members have left it") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    REQUIRE(place.membership.reserve(kGiB, 0, nullptr));
    const auto mapped = [&] {
        std::ifstream maps("/proc/self/maps");
        unsigned count = 0;
        for (std::string line; std::getline(maps, line);)
            count += line.find(folder.path) != line.npos && line.ends_with("(deleted)");
        return count;
    };
    for (int i = 0; i < 4; i++) {
        std::filesystem::remove(folder.file());
        place.ledger.take_back_dead();
        CHECK(mapped() == 0);
        CHECK(place.membership.used() == kGiB);
    }
}

TEST_CASE("a process that loses its ledger again and again takes no more memory for that") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    const auto own_bytes = [] {
        std::ifstream rollup("/proc/self/smaps_rollup");
        for (std::string line; std::getline(rollup, line);)
            if (line.starts_with("Anonymous:"))
                return std::stoull(line.substr(line.find(' '))) << 10;
        return 0ull;
    };
    const auto lose_often = [&](int times) {
        for (int i = 0; i < times; i++) {
            std::filesystem::remove(folder.file());
            place.ledger.take_back_dead();
        }
    };
    lose_often(2);
    const uint64_t before = own_bytes();
    REQUIRE(before > 0);
    lose_often(30);
    CHECK(own_bytes() < before + 8 * offsetof(File, members));
}

TEST_CASE("a program that has given its rights back makes no file in the name of who it was") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    REQUIRE(chmod(folder.path.c_str(), 01777) == 0);
    Child child([&, inner = member(folder)](char step) {
        if (step == Step::become_other_user)
            return setgid(60002) == 0 && setuid(60002) == 0 ? Answer::done : Answer::refused;
        return inner(step);
    });
    REQUIRE(child.ask(Step::join) == Answer::joined);
    REQUIRE(child.ask(Step::reserve_5_gib) == Answer::reserved);
    REQUIRE(child.ask(Step::become_other_user) == Answer::done);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
        std::filesystem::remove(entry);
    child.ask(Step::take_back_dead);
    CHECK(child.ask(Step::read_total) == gib(5));
    CHECK(child.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a ledger that is lost under its members is put back by them, with what they hold") {
    const LedgerFolder folder;
    const std::string how = GENERATE("removed", "removed with its folder", "replaced", "written over");
    CAPTURE(how);
    Child a(member(folder)), b(member(folder)), c(member(folder));
    REQUIRE(a.ask(Step::join) == Answer::joined);
    REQUIRE(b.ask(Step::join) == Answer::joined);
    REQUIRE(a.ask(Step::reserve_5_gib) == Answer::reserved);
    lose(folder, how);
    a.ask(Step::take_back_dead);
    CHECK(a.ask(Step::read_total) == gib(5));
    CHECK(c.ask(Step::join) == Answer::joined);
    CHECK(c.ask(Step::read_total) == gib(5));
    CHECK(c.ask(Step::reserve_5_gib) == Answer::refused);
    b.ask(Step::take_back_dead);
    CHECK(b.ask(Step::read_total) == gib(5));
    CHECK(b.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK(a.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(b.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(c.ask(Step::read_total) == gib(5));
    // And what one of them held is taken back there.
    b.kill();
    CHECK(a.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(c.ask(Step::read_total) == gib(0));
}

TEST_CASE("what a dead member of a removed ledger held is taken back there, where no other file can be made") {
    const LedgerFolder folder;
    Child first(member(folder)), second(member(folder));
    REQUIRE(first.ask(Step::join) == Answer::joined);
    REQUIRE(second.ask(Step::join) == Answer::joined);
    REQUIRE(first.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    std::filesystem::create_directory(folder.file());  // nor is there another file where there is no room for one
    first.kill();
    CHECK(second.ask(Step::read_total) == gib(5));
    CHECK(second.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(second.ask(Step::read_total) == gib(0));
    // Where one can be made again, it is.
    std::filesystem::remove(folder.file());
    second.ask(Step::take_back_dead);
    CHECK(std::filesystem::is_regular_file(folder.file()));
    CHECK(second.ask(Step::reserve_5_gib) == Answer::reserved);
    Child newcomer(member(folder));
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::read_total) == gib(5));
}

TEST_CASE("a ledger is put back with the limits and reservations that were in it") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("job", 4 * kGiB, 4 * kGiB, AccountKind::job) == Joined::yes);
    REQUIRE(place.ledger.set_limit(AccountKind::job, "job", 6 * kGiB));
    place.ledger.take_back_dead();
    std::filesystem::remove(folder.file());
    place.ledger.take_back_dead();
    CHECK(place.membership.limit() == 6 * kGiB);
    Child other([&](char) {
        Place another;
        return another.open(folder) && another.join("more", 14 * kGiB, 14 * kGiB, AccountKind::job) == Joined::refused
                   ? gib(another.available / kGiB)
                   : Answer::unknown;
    });
    CHECK(other.ask(Step::join) == gib(12));
}

TEST_CASE("a limit that somebody wrote text over is not believed") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 2 * kGiB) == Joined::yes);
    lose(folder, "written over");
    CHECK(place.membership.limit() == 2 * kGiB);
    CHECK_FALSE(place.membership.reserve(3 * kGiB, 0, nullptr));
    place.ledger.take_back_dead();
    CHECK(place.membership.limit() == 2 * kGiB);
    CHECK(place.membership.used() == 0);
    CHECK(place.membership.reserve(kGiB, 0, nullptr));
}

TEST_CASE("a member that closed every descriptor still takes back what the dead held") {
    const LedgerFolder folder;
    Child a(member(folder)), b(member(folder));
    REQUIRE(a.ask(Step::join) == Answer::joined);
    REQUIRE(b.ask(Step::join) == Answer::joined);
    REQUIRE(b.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(a.ask(Step::close_descriptors) == Answer::closed);
    b.kill();
    CHECK(a.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(a.ask(Step::read_total) == gib(0));
    CHECK(a.ask(Step::reserve_5_gib) == Answer::reserved);
    // And has the file that is there, once there is another one.
    CHECK(a.ask(Step::close_descriptors) == Answer::closed);
    std::filesystem::remove(folder.file());
    a.ask(Step::take_back_dead);
    Child newcomer(member(folder));
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::read_total) == gib(5));
    CHECK(a.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(newcomer.ask(Step::read_total) == gib(0));
}

TEST_CASE("the ledger is locked once for a look, also where it was removed and none can be made in its place") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", kGiB) == Joined::yes);
    const Mapped mapped(folder);
    const uint32_t& locked = mapped.file->header.handed_on;
    const uint32_t before = locked;
    place.ledger.take_back_dead();
    CHECK(locked == before + 1);
    std::filesystem::remove(folder.file());
    std::filesystem::create_directory(folder.file());
    place.ledger.take_back_dead();
    CHECK(locked == before + 2);
}

TEST_CASE("threads that reserve and give back while the ledger is put back leave an exact count", "[slow]") {
    const LedgerFolder folder;
    const int count = rounds(200, 2000);
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            while (!stop)
                if (place.membership.reserve(kMiB, 0, nullptr))
                    place.membership.change(-static_cast<int64_t>(kMiB));
        });
    int gone = 0;
    for (int i = 0; i < count; i++) {
        std::filesystem::remove(folder.file());
        place.ledger.take_back_dead();
        gone += !std::filesystem::exists(folder.file());
    }
    stop = true;
    for (std::thread& thread : threads)
        thread.join();
    CHECK(gone == 0);
    CHECK(place.membership.used() == 0);
    CHECK(place.membership.held() == 0);
}

TEST_CASE("processes killed at random while the ledger is removed again and again: the survivor's count is exact",
          "[slow]") {
    const int kills = rounds(200, 5000);
    const LedgerFolder folder;
    Place survivor;
    REQUIRE(survivor.open(folder));
    REQUIRE(survivor.join("lab", 8 * kGiB) == Joined::yes);
    REQUIRE(survivor.membership.reserve(kGiB, 0, nullptr));
    pid_t workers[3] = {};
    const auto start = [&](pid_t& worker) {
        worker = fork();
        if (worker != 0)
            return;
        std::mt19937 random(static_cast<unsigned>(getpid()));
        Place place;
        if (!place.open(folder) || place.join("lab", 8 * kGiB) != Joined::yes)
            _exit(1);
        for (;;) {
            const uint64_t bytes = random() % (3 * kGiB);
            if (place.membership.reserve(bytes, 0, nullptr) && random() % 4)
                place.membership.change(-static_cast<int64_t>(bytes));
            else
                place.ledger.take_back_dead();
        }
    };
    std::mt19937 random(2);
    for (pid_t& worker : workers)
        start(worker);
    int ended = 0;
    for (int i = 0; i < kills; i++) {
        usleep(random() % 1500);
        if (i % 5 == 0)
            std::filesystem::remove(folder.file());
        pid_t& worker = workers[random() % 3];
        ::kill(worker, SIGKILL);
        int status = 0;
        waitpid(worker, &status, 0);
        ended += WIFEXITED(status);
        survivor.ledger.take_back_dead();
        start(worker);
    }
    for (pid_t& worker : workers)
        ::kill(worker, SIGKILL), waitpid(worker, nullptr, 0);
    survivor.ledger.take_back_dead();
    CHECK(ended == 0);
    CHECK(std::filesystem::exists(folder.file()));
    CHECK(survivor.membership.used() == kGiB);
    CHECK(survivor.membership.held() == kGiB);
    Child newcomer(member(folder));  // in the file that is there now
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::read_total) == gib(1));
}

TEST_CASE("a member that closed every descriptor lives, as seen from another pid namespace too") {
    if (!can_unshare(CLONE_NEWPID))
        return;
    const LedgerFolder folder;
    Child a(member(folder));
    REQUIRE(a.ask(Step::join) == Answer::joined);
    REQUIRE(a.ask(Step::reserve_5_gib) == Answer::reserved);
    const int here = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    REQUIRE(unshare(CLONE_NEWPID) == 0);
    {
        Child b(member(folder));  // process 1 of its namespace
        REQUIRE(setns(here, CLONE_NEWPID) == 0);
        close(here);
        REQUIRE(b.ask(Step::join) == Answer::joined);
        CHECK(b.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        CHECK(a.ask(Step::close_descriptors) == Answer::closed);
        CHECK(b.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        CHECK(b.ask(Step::read_total) == gib(5));
        CHECK(b.ask(Step::reserve_5_gib) == Answer::refused);
        a.kill();
        CHECK(b.ask(Step::take_back_dead) == Answer::taken_back);
        CHECK(b.ask(Step::reserve_5_gib) == Answer::reserved);
    }
}

TEST_CASE("groups without members make room for others, the one that was left first") {
    const LedgerFolder folder;
    const auto once = [&](const std::string& name, uint64_t limit) {
        Place place;
        REQUIRE(place.open(folder));
        CAPTURE(name);
        REQUIRE(place.join(name.c_str(), limit) == Joined::yes);
        const uint64_t held = place.membership.limit();
        place.ledger.close();
        return held;
    };
    Place lives;
    REQUIRE(lives.open(folder));
    REQUIRE(lives.join("lives", 7 * kGiB) == Joined::yes);
    for (unsigned i = 0; i < 2 * kAccounts; i++)
        once("exp" + std::to_string(i), kGiB);
    // The group that was left last is still known: its limit holds for a process that gives none.
    CHECK(once("exp" + std::to_string(2 * kAccounts - 1), kNoLimitBytes) == kGiB);
    CHECK(once("exp0", kNoLimitBytes) == kNoLimitBytes);
    CHECK(once("lives", kNoLimitBytes) == 7 * kGiB);
    Place job;
    REQUIRE(job.open(folder));
    CHECK(job.join("job", kGiB, kGiB, AccountKind::job) == Joined::yes);
}

TEST_CASE("where a ledger has no room for one more job or group, it is said how many it has room for") {
    const LedgerFolder folder;
    std::vector<std::unique_ptr<Place>> taken;
    const auto join = [&](AccountKind kind) {
        taken.push_back(std::make_unique<Place>());
        REQUIRE(taken.back()->open(folder));
        return taken.back()->join(("one" + std::to_string(taken.size())).c_str(), kGiB, 0, kind);
    };
    for (unsigned i = 0; i < kMaxGroups; i++)
        REQUIRE(join(AccountKind::group) == Joined::yes);
    CHECK(join(AccountKind::group) == Joined::unavailable);
    CHECK(std::string(taken.back()->failure.text) ==
          "a GPU's ledger has room for 96 groups, and all of it is taken: wait until one has ended, or name a group "
          "that is there");
    for (unsigned i = kMaxGroups; i < kAccounts; i++)
        REQUIRE(join(AccountKind::job) == Joined::yes);
    CHECK(join(AccountKind::job) == Joined::unavailable);
    CHECK(std::string(taken.back()->failure.text) ==
          "a GPU's ledger has room for 128 jobs and groups, and all of it is taken: wait until one has ended, or start "
          "several programs with one cuslice run");
}
