// SPDX-License-Identifier: Apache-2.0
// A ledger that is removed under processes that notice nothing: what they hold stays counted in the one that is made.
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/policy/rounds.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// Step of a child that counts the descriptors and mappings it has of files that were removed.
constexpr char kCountRemovedFiles = 'c';

// As the others see it.
uint64_t used_in(const LedgerFolder& folder, const char* name = "lab") {
    Ledger ledger;
    LedgerError failure;
    Watched watched;
    REQUIRE(ledger.open_existing(folder.path.c_str(), kUuid, &failure));
    REQUIRE(ledger.watch(AccountKind::group, name, &watched));
    const uint64_t used = watched.used;
    ledger.close();
    return used;
}

}  // namespace

TEST_CASE("what an idle member of a removed ledger holds is counted in the new one, whoever makes it") {
    const LedgerFolder folder;
    const bool by_member = GENERATE(true, false);
    CAPTURE(by_member);
    Child idle(member(folder)), other(member(folder)), newcomer(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(other.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    if (by_member)
        other.ask(Step::take_back_dead);
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::read_total) == gib(5));
    CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::refused);
    // It is refused in the old one, though nothing there is over the limit, and goes on in the new one.
    CHECK(idle.ask(Step::reserve_1_gib) == Answer::refused);
    CHECK(idle.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
    CHECK(idle.ask(Step::reserve_1_gib) == Answer::reserved);
    CHECK(newcomer.ask(Step::read_total) == gib(6));
    CHECK(other.ask(Step::reserve_5_gib) == Answer::refused);
    SECTION("and is there again once it is given back") {
        CHECK(idle.ask(Step::give_back_5_gib) == Answer::given_back);
        CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::reserved);
        CHECK(newcomer.ask(Step::read_total) == gib(6));
    }
    SECTION("and once it is killed") {
        idle.kill();
        CHECK(newcomer.ask(Step::take_back_dead) == Answer::taken_back);
        CHECK(newcomer.ask(Step::read_total) == gib(0));
        CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::reserved);
    }
}

TEST_CASE("the peak goes on in the new ledger, whoever makes it") {
    const LedgerFolder folder;
    const bool by_member = GENERATE(true, false);
    CAPTURE(by_member);
    Child idle(member(folder)), newcomer(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    REQUIRE(idle.ask(Step::reserve_1_gib) == Answer::reserved);
    REQUIRE(idle.ask(Step::reserve_1_gib) == Answer::reserved);
    REQUIRE(idle.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(idle.ask(Step::read_peak) == gib(7));
    std::filesystem::remove(folder.file());
    if (by_member)
        idle.ask(Step::take_back_dead);
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::read_total) == gib(2));
    CHECK(newcomer.ask(Step::read_peak) == gib(7));
    CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(newcomer.ask(Step::reserve_1_gib) == Answer::reserved);
    CHECK(newcomer.ask(Step::read_peak) == gib(8));
    idle.ask(Step::take_back_dead);
    CHECK(idle.ask(Step::read_peak) == gib(8));
}

TEST_CASE("a member that is killed before it has found the new ledger holds nothing there") {
    const LedgerFolder folder;
    Child idle(member(folder)), newcomer(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
    CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::refused);
    idle.kill();
    CHECK(newcomer.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(newcomer.ask(Step::read_total) == gib(0));
    CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::reserved);
}

TEST_CASE("what a member gives back before it has found the new ledger can be had once it has") {
    const LedgerFolder folder;
    Child idle(member(folder)), newcomer(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(idle.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(newcomer.ask(Step::read_total) == gib(5));
    idle.ask(Step::take_back_dead);
    CHECK(newcomer.ask(Step::read_total) == gib(0));
    CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(idle.ask(Step::reserve_5_gib) == Answer::refused);
}

TEST_CASE("a ledger that is removed again before all have found the first one loses nobody") {
    const LedgerFolder folder;
    // `closed`: the idle member has closed every descriptor, so only the ledger that was put back says what it holds.
    // Otherwise the idle member itself still has the file that it joined.
    const bool closed = GENERATE(false, true), first_lives = GENERATE(false, true);
    CAPTURE(closed, first_lives);
    if (closed && !first_lives)
        return;
    Child idle(member(folder)), first(member(folder)), second(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    REQUIRE(first.ask(Step::join) == Answer::joined);
    REQUIRE(first.ask(Step::reserve_1_gib) == Answer::reserved);
    if (closed)
        REQUIRE(idle.ask(Step::close_descriptors) == Answer::closed);
    std::filesystem::remove(folder.file());
    if (!first_lives)
        first.kill();
    REQUIRE(second.ask(Step::join) == Answer::joined);
    CHECK(second.ask(Step::read_total) == gib(first_lives ? 6 : 5));
    CHECK(second.ask(Step::reserve_5_gib) == Answer::refused);
    idle.ask(Step::take_back_dead);
    first.ask(Step::take_back_dead);
    CHECK(second.ask(Step::read_total) == gib(first_lives ? 6 : 5));
    CHECK(idle.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(second.ask(Step::read_total) == gib(first_lives ? 1 : 0));
}

TEST_CASE("of who has a place in one removed ledger and an entry in another one, the place says what is held") {
    const LedgerFolder folder;
    Child idle(member(folder)), first(member(folder)), second(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    REQUIRE(first.ask(Step::join) == Answer::joined);
    CHECK(idle.ask(Step::give_back_5_gib) == Answer::given_back);  // where it has its place
    CHECK(first.ask(Step::read_total) == gib(5));
    std::filesystem::remove(folder.file());
    REQUIRE(second.ask(Step::join) == Answer::joined);
    CHECK(second.ask(Step::read_total) == gib(0));
    CHECK(second.ask(Step::reserve_5_gib) == Answer::reserved);
}

TEST_CASE("a new ledger has a slot for each member that is carried over, and no other is in use") {
    const LedgerFolder folder;
    Child a(member(folder)), b(member(folder));
    REQUIRE(a.ask(Step::join) == Answer::joined);
    for (const uint32_t members : {1u, 2u}) {
        CAPTURE(members);
        if (members == 2)
            REQUIRE(b.ask(Step::join) == Answer::joined);
        a.ask(Step::take_back_dead);  // is in the file that is there now
        std::filesystem::remove(folder.file());
        Place place;
        REQUIRE(place.open(folder));
        const Mapped mapped(folder);
        CHECK(mapped.file->header.members == members);
        place.ledger.close();
    }
}

TEST_CASE("who has gone to another ledger has no place there but its own, whatever number it had before") {
    const LedgerFolder folder;
    Child first(member(folder)), a(member(folder)), newcomer(member(folder));
    REQUIRE(first.ask(Step::join) == Answer::joined);
    REQUIRE(a.ask(Step::join) == Answer::joined);  // the second place
    first.kill();
    std::filesystem::remove(folder.file());
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);  // has the second one of the new ledger
    REQUIRE(newcomer.ask(Step::reserve_5_gib) == Answer::reserved);
    a.ask(Step::take_back_dead);
    newcomer.kill();
    CHECK(a.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(a.ask(Step::read_total) == gib(0));
    CHECK(a.ask(Step::reserve_5_gib) == Answer::reserved);
}

TEST_CASE("who has carried others over has nothing of the removed ledger any more") {
    const LedgerFolder folder;
    Child idle(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    std::filesystem::remove(folder.file());
    Child newcomer([&, inner = member(folder)](char step) {
        if (step == Step::join)
            return inner(step);
        unsigned count = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            count += std::filesystem::read_symlink(entry.path(), gone).string() == folder.file() + " (deleted)";
        }
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            count += line.ends_with(folder.file() + " (deleted)");
        return digit(count);
    });
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(kCountRemovedFiles) == digit(0));
}

TEST_CASE("a new ledger whose maker was killed over it is finished by whoever has it locked next") {
    const LedgerFolder folder;
    Child idle(member(folder)), newcomer(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    {
        Place maker;
        REQUIRE(maker.open(folder));
        maker.ledger.close();
    }
    const Mapped mapped(folder);
    File& file = *mapped.file;
    CHECK(file.header.unfinished == 0);
    CHECK(file.accounts[0].total.bytes == 5 * kGiB);
    // As if it had not seen the idle one yet.
    file.members[0].state.store(MemberState::free);
    file.accounts[0].state.store(AccountState::free);
    file.accounts[0].total.bytes = 0;
    for (uint32_t i = 0; i < kStripes; i++)
        file.stripes[i].held.store(0);
    file.header.unfinished = 1;
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(file.header.unfinished == 0);
    CHECK(newcomer.ask(Step::read_total) == gib(5));
    CHECK(newcomer.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK(idle.ask(Step::give_back_5_gib) == Answer::given_back);
    idle.ask(Step::take_back_dead);
    CHECK(newcomer.ask(Step::read_total) == gib(0));
}

TEST_CASE("once a ledger has been put back nobody has it locked, nor the one that was removed") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    const Mapped old(folder);
    const uint32_t before = old.file->header.handed_on;
    std::filesystem::remove(folder.file());
    SECTION("by a member") {
        place.ledger.take_back_dead();
        CHECK(Mapped(folder).file->header.locker == 0);
    }
    SECTION("by somebody else, whom another process lets nobody follow") {
        Child newcomer(member(folder));
        REQUIRE(newcomer.ask(Step::join) == Answer::joined);
        CHECK(old.file->header.handed_on > before);  // so nobody went anywhere meanwhile
        const Keeper keeper(folder);
        CHECK_FALSE(place.ledger.take_back_dead());
    }
    CHECK(old.file->header.handed_on > before);
    CHECK(old.file->header.locker == 0);
    CHECK(old.file->header.holder == 0);
    const Living other(folder);
    CHECK(lock_header_until(Mapped(folder).file->header, other.locker(), Deadline(500)));
}

TEST_CASE("a reservation is carried over to the new ledger, a launcher's as a member's") {
    const LedgerFolder folder;
    const bool launcher = GENERATE(false, true);
    CAPTURE(launcher);
    const auto holder = [&](char) {
        static Place place;
        return place.ledger.open(folder.path.c_str(), kUuid, kCapacity, launcher, &place.failure) &&
                       place.join("job", 4 * kGiB, 4 * kGiB, AccountKind::job) == Joined::yes &&
                       place.ledger.set_limit(AccountKind::job, "job", 6 * kGiB)
                   ? Answer::joined
                   : Answer::refused;
    };
    Child one(holder);
    REQUIRE(one.ask(Step::join) == Answer::joined);
    std::filesystem::remove(folder.file());
    const auto left = [&] {
        Place place;
        REQUIRE(place.open(folder));
        CHECK(place.join("more", 2 * kCapacity, 2 * kCapacity, AccountKind::job) == Joined::refused);
        place.ledger.close();
        return place.available;
    };
    CHECK(left() == 12 * kGiB);
    {
        Place place;
        REQUIRE(place.open(folder));
        REQUIRE(place.join("job", 4 * kGiB, 4 * kGiB, AccountKind::job) == Joined::yes);
        CHECK(place.membership.limit() == 6 * kGiB);
        place.ledger.close();
    }
    CHECK(left() == 12 * kGiB);
    one.kill();
    CHECK(left() == kCapacity);
}

namespace {

// Steps of a pid namespace's first process, which has two members as its children.
struct Inside {
    static constexpr char mount_proc = 'm';
    static constexpr char start_idle = 'i';
    static constexpr char start_neighbour = 'n';
    static constexpr char kill_idle = 'k';
    static constexpr char neighbour_takes_back = 'd';
    static constexpr char kill_neighbour = 'e';
};

}  // namespace

TEST_CASE("who was carried over in another pid namespace counts for as long as it lives, whoever looks") {
    if (!can_unshare(CLONE_NEWPID | CLONE_NEWNS))
        return;
    const LedgerFolder folder;
    const int here = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    REQUIRE(unshare(CLONE_NEWPID) == 0);
    {
        // Process 1 of the namespace, and its children.
        Child first([&, idle = std::shared_ptr<Child>(), neighbour = std::shared_ptr<Child>()](char step) mutable {
            switch (step) {
                case Inside::mount_proc:
                    return unshare(CLONE_NEWNS) == 0 &&
                                   mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                                   mount("proc", "/proc", "proc", 0, nullptr) == 0
                               ? Answer::done
                               : Answer::refused;
                case Inside::start_idle:
                    idle = std::make_shared<Child>(member(folder));
                    return idle->ask(Step::join) == Answer::joined ? idle->ask(Step::reserve_5_gib) : Answer::refused;
                case Inside::start_neighbour:
                    neighbour = std::make_shared<Child>(member(folder));
                    return neighbour->ask(Step::join);
                case Inside::kill_idle:
                    idle->kill();
                    return Answer::done;
                case Inside::neighbour_takes_back:
                    return neighbour->ask(Step::take_back_dead);
                case Inside::kill_neighbour:
                    neighbour->kill();
                    return Answer::done;
                default:
                    return Answer::unknown;
            }
        });
        REQUIRE(setns(here, CLONE_NEWPID) == 0);
        close(here);
        REQUIRE(first.ask(Inside::mount_proc) == Answer::done);
        REQUIRE(first.ask(Inside::start_idle) == Answer::reserved);
        std::filesystem::remove(folder.file());
        REQUIRE(first.ask(Inside::start_neighbour) == Answer::joined);
        Child outside(member(folder));
        REQUIRE(outside.ask(Step::join) == Answer::joined);
        CHECK(outside.ask(Step::read_total) == gib(5));
        CHECK(outside.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        CHECK(outside.ask(Step::reserve_5_gib) == Answer::refused);
        const bool seen = GENERATE(true, false);
        CAPTURE(seen);
        CHECK(first.ask(Inside::kill_idle) == Answer::done);
        if (seen) {
            CHECK(first.ask(Inside::neighbour_takes_back) == Answer::taken_back);
            CHECK(outside.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        } else {
            CHECK(first.ask(Inside::kill_neighbour) == Answer::done);
            CHECK(outside.ask(Step::take_back_dead) == Answer::taken_back);
        }
        CHECK(outside.ask(Step::read_total) == gib(0));
        CHECK(outside.ask(Step::reserve_5_gib) == Answer::reserved);
    }
}

TEST_CASE("where no new ledger can be made the members go on in the one that was removed, under its limit") {
    const LedgerFolder folder;
    Child a(member(folder)), b(member(folder));
    REQUIRE(a.ask(Step::join) == Answer::joined);
    REQUIRE(b.ask(Step::join) == Answer::joined);
    REQUIRE(a.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    // Something else is in its place, which nobody can replace.
    std::filesystem::create_directory(folder.file());
    b.ask(Step::take_back_dead);
    CHECK(b.ask(Step::read_total) == gib(5));
    CHECK(b.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK(b.ask(Step::reserve_1_gib) == Answer::reserved);
    CHECK(a.ask(Step::read_total) == gib(6));
    std::filesystem::remove(folder.file());
    b.ask(Step::take_back_dead);
    Child newcomer(member(folder));
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::read_total) == gib(6));
}

TEST_CASE("a ledger removed again and again under processes that are killed at random: the limit holds all the time") {
    const int turns = rounds(150, 3000);
    const LedgerFolder folder;
    constexpr unsigned kWorkers = 3;
    constexpr uint64_t kGrants = 100;
    // Bytes that each worker holds at least, by its own count; behind them, the number of all grants.
    void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* const held = static_cast<std::atomic<uint64_t>*>(memory);
    Child idle(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    pid_t workers[kWorkers] = {};
    const auto start = [&](unsigned index) {
        held[index] = 0;
        workers[index] = fork();
        if (workers[index] != 0)
            return;
        std::mt19937 random(static_cast<unsigned>(getpid()));
        Place place;
        // While another one is being admitted it is tried again.
        while (!place.open(folder))
            continue;
        if (place.join("lab", 8 * kGiB) != Joined::yes)
            _exit(1);
        for (;;) {
            const uint64_t bytes = random() % (2 * kGiB);
            if (!place.membership.reserve(bytes, 0, nullptr)) {
                place.ledger.take_back_dead();
                continue;
            }
            held[index] = bytes;
            held[kWorkers]++;
            for (unsigned i = random() % 2000; i > 0; i--)
                cuslice::spin_pause();
            held[index] = 0;
            place.membership.change(-static_cast<int64_t>(bytes));
        }
    };
    for (unsigned i = 0; i < kWorkers; i++)
        start(i);
    std::mt19937 random(3);
    uint64_t most = 0;
    int ended = 0;
    for (int turn = 0; turn < turns || (held[kWorkers] < kGrants && turn < 100 * turns); turn++) {
        usleep(random() % 1500);
        if (turn % 3 == 0)
            std::filesystem::remove(folder.file());
        if (turn % 2 == 0) {
            const unsigned one = random() % kWorkers;
            ::kill(workers[one], SIGKILL);
            int status = 0;
            waitpid(workers[one], &status, 0);
            ended += WIFEXITED(status);
            start(one);
        }
        usleep(random() % 500);
        // At one moment.
        uint64_t sum = 5 * kGiB;
        for (const pid_t worker : workers) {
            ::kill(worker, SIGSTOP);
            waitpid(worker, nullptr, WUNTRACED);
        }
        for (unsigned i = 0; i < kWorkers; i++)
            sum += held[i];
        for (const pid_t worker : workers)
            ::kill(worker, SIGCONT);
        most = std::max(most, sum);
    }
    for (const pid_t worker : workers)
        ::kill(worker, SIGKILL), waitpid(worker, nullptr, 0);
    CHECK(held[kWorkers] >= kGrants);
    munmap(memory, 4096);
    CHECK(ended == 0);
    CHECK(most <= 8 * kGiB);
    // And nothing is held but by the one that has slept all the while.
    Child newcomer(member(folder));
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    newcomer.ask(Step::take_back_dead);
    CHECK(newcomer.ask(Step::read_total) == gib(5));
    CHECK(used_in(folder) == 5 * kGiB);
    CHECK(idle.ask(Step::give_back_5_gib) == Answer::given_back);
    idle.ask(Step::take_back_dead);
    CHECK(used_in(folder) == 0);
}
