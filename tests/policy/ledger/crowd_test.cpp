// SPDX-License-Identifier: Apache-2.0
// Many processes at one ledger: nobody is turned away because others were quicker.
#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/policy/rounds.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// The lock is let go of and taken by another process.
void hand_on_to(Header& header, int32_t pid) {
    __atomic_store_n(&header.locker, pid, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&header.handed_on, 1, __ATOMIC_SEQ_CST);
}

// Has the lock, and says every moment that it is another process, for longer than anybody waits for one.
void hand_on(const LedgerFolder& folder, int tell) {
    const Living self(folder);
    const Mapped mapped(folder);
    Header& header = mapped.file->header;
    if (!lock_header_until(header, self.locker(), Deadline(500)) || write(tell, "h", 1) != 1)
        _exit(1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
    for (int32_t holder = 1; std::chrono::steady_clock::now() < end; holder = holder % 1000 + 1) {
        hand_on_to(header, holder);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    hand_on_to(header, 0);
    unlock_header(header, self.locker());
}

}  // namespace

TEST_CASE("who joins waits for a lock that goes from hand to hand, however long") {
    const LedgerFolder folder;
    Place first, second;
    REQUIRE(first.open(folder));
    REQUIRE(first.join("lab", 8 * kGiB) == Joined::yes);
    REQUIRE(second.open(folder));
    int held[2];
    REQUIRE(pipe2(held, O_CLOEXEC) == 0);
    const pid_t child = fork();
    if (child == 0) {
        close(held[0]);
        hand_on(folder, held[1]);
        _exit(0);
    }
    close(held[1]);
    char letter = 0;
    REQUIRE(read(held[0], &letter, 1) == 1);
    INFO(second.failure.text);
    CHECK(second.join("lab", 8 * kGiB) == Joined::yes);
    CHECK(waitpid(child, nullptr, 0) == child);
    close(held[0]);
}

TEST_CASE("all of a crowd that joins at once share the limit") {
    constexpr unsigned kProcesses = kSlower > 1 ? 60 : 300;
    constexpr uint64_t kShare = 1 << 20;
    const LedgerFolder folder;
    Place own;
    REQUIRE(own.open(folder));
    REQUIRE(own.join("lab", kProcesses * kShare) == Joined::yes);
    int go[2], joined[2], end[2];
    for (int* both : {go, joined, end})
        REQUIRE(pipe2(both, O_CLOEXEC) == 0);
    std::vector<pid_t> children;
    for (unsigned i = 0; i < kProcesses; i++) {
        children.push_back(fork());
        if (children.back() != 0)
            continue;
        for (int* both : {go, end})
            close(both[1]);
        char byte = Answer::refused;
        Place place;
        if (read(go[0], &byte, 1) != 0)
            _exit(1);
        const bool shares = place.open(folder) && place.join("lab", kProcesses * kShare) == Joined::yes &&
                            place.membership.reserve(kShare, 0, nullptr);
        byte = shares ? Answer::joined : Answer::refused;
        if (write(joined[1], &byte, 1) != 1 || read(end[0], &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(go[1]);
    unsigned sharing = 0;
    for (unsigned i = 0; i < kProcesses; i++) {
        char byte = Answer::refused;
        REQUIRE(read(joined[0], &byte, 1) == 1);
        sharing += byte == Answer::joined;
    }
    CHECK(sharing == kProcesses);
    CHECK(own.membership.used() == kProcesses * kShare);
    CHECK(!own.membership.reserve(kShare, 0, nullptr));
    close(end[1]);
    for (const pid_t child : children)
        CHECK(waitpid(child, nullptr, 0) == child);
    // And when they have gone all of it can be had.
    CHECK(own.ledger.take_back_dead());
    CHECK(own.membership.reserve(kProcesses * kShare, 0, nullptr));
    for (const int file : {go[0], joined[0], joined[1], end[0]})
        close(file);
}

namespace {

// A process that joins, takes its share, and ends without a word.
void come_and_go(const LedgerFolder& folder, uint64_t share) {
    const pid_t child = fork();
    if (child == 0) {
        Place place;
        const bool good = place.open(folder) && place.join("lab", 8 * kGiB) == Joined::yes &&
                          place.membership.reserve(share, 0, nullptr);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("whoever joins after a crowd has died finds nothing of it, and the dead don't become many") {
    constexpr unsigned kLiving = 24, kPassing = 200, kMaxDead = 80;
    constexpr uint64_t kShare = 1 << 20;
    const LedgerFolder folder;
    std::vector<std::unique_ptr<Child>> living;
    for (unsigned i = 0; i < kLiving; i++) {
        living.push_back(std::make_unique<Child>(member(folder)));
        REQUIRE(living.back()->ask(Step::join) == Answer::joined);
    }
    for (unsigned i = 0; i < kPassing; i++)
        come_and_go(folder, kShare);
    {
        Place place;
        REQUIRE(place.open(folder));
        REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
        CHECK(place.membership.used() <= kMaxDead * kShare);
        place.ledger.close();
    }
    CHECK(living.front()->ask(Step::reserve_5_gib) == Answer::reserved);
    for (auto& child : living)
        child->kill();
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    CHECK(place.membership.used() == 0);
    CHECK(place.membership.reserve(8 * kGiB, 0, nullptr));
}

TEST_CASE("where few have been, whoever joins takes back what all of the dead held") {
    constexpr unsigned kFew = 16;
    const LedgerFolder folder;
    Child lives(member(folder));
    REQUIRE(lives.ask(Step::join) == Answer::joined);
    std::vector<std::unique_ptr<Child>> others;
    for (unsigned i = 1; i < kFew; i++) {
        others.push_back(std::make_unique<Child>(member(folder, kFew * kGiB)));
        REQUIRE(others.back()->ask(Step::join) == Answer::joined);
    }
    Place limit;
    REQUIRE(limit.open(folder));
    REQUIRE(limit.ledger.set_limit(AccountKind::group, "lab", kFew * kGiB));
    for (auto& other : others) {
        REQUIRE(other->ask(Step::reserve_1_gib) == Answer::reserved);
        other->kill();
    }
    CHECK(Mapped(folder).file->header.members == kFew);
    Child newcomer(member(folder));
    REQUIRE(newcomer.ask(Step::join) == Answer::joined);
    CHECK(newcomer.ask(Step::read_total) == gib(0));
}
