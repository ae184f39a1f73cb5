// SPDX-License-Identifier: Apache-2.0
// One GPU's ledger between real processes: children of this test, each a process of its own with its own locks.
#include "policy/ledger/ledger.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/policy/rounds.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// Steps of a process with a job of its own, beside Step::join and Step::become_other_user.
struct JobStep {
    static constexpr char look = 'l';
    static constexpr char read_available = 'a';     // in GiB, as it was found last
    static constexpr char read_first_holder = 'h';  // the last digit of its user's number
};

}  // namespace

TEST_CASE("members of a group share one limit") {
    const LedgerFolder folder;
    Child a(member(folder)), b(member(folder));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(b.ask(Step::join) == Answer::joined);
    CHECK(a.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(b.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK(a.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(b.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(a.ask(Step::read_total) == gib(5));
}

TEST_CASE("what a killed member held is taken back before anybody is refused, and not before") {
    const LedgerFolder folder;
    Child a(member(folder)), b(member(folder));
    REQUIRE(a.ask(Step::join) == Answer::joined);
    REQUIRE(b.ask(Step::join) == Answer::joined);
    REQUIRE(a.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(b.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
    SECTION("killed") {}
    SECTION("stopped first") { ::kill(a.pid(), SIGSTOP); }
    SECTION("after it closed every descriptor") { CHECK(a.ask(Step::close_descriptors) == Answer::closed); }
    CHECK(b.ask(Step::take_back_dead) == Answer::nothing_to_take_back);  // alive, so it keeps what it has
    a.kill();
    CHECK(b.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(b.ask(Step::read_total) == gib(0));
    CHECK(b.ask(Step::reserve_5_gib) == Answer::reserved);
}

TEST_CASE("a forked child that lives on holds nothing of its parent's") {
    const LedgerFolder folder;
    Child b(member(folder));
    REQUIRE(b.ask(Step::join) == Answer::joined);
    {
        Child a(member(folder));
        REQUIRE(a.ask(Step::join) == Answer::joined);
        REQUIRE(a.ask(Step::reserve_5_gib) == Answer::reserved);
        REQUIRE(a.ask(Step::leave_child_behind) == Answer::done);
        a.kill();
    }
    CHECK(b.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(b.ask(Step::read_total) == gib(0));
}

TEST_CASE("a limit that is set anew counts from the next reservation on") {
    const LedgerFolder folder;
    Child a(member(folder)), b(member(folder));
    REQUIRE(a.ask(Step::join) == Answer::joined);
    REQUIRE(b.ask(Step::join) == Answer::joined);
    REQUIRE(a.ask(Step::reserve_5_gib) == Answer::reserved);
    Place operators;
    REQUIRE(operators.open(folder));
    CHECK(b.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK(operators.ledger.set_limit(AccountKind::group, "lab", 10 * kGiB));
    CHECK(b.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(operators.ledger.set_limit(AccountKind::group, "lab", 4 * kGiB));
    CHECK(b.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(b.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK_FALSE(operators.ledger.set_limit(AccountKind::group, "nobody", kGiB));
    CHECK_FALSE(operators.ledger.set_limit(AccountKind::job, "lab", kGiB));
}

TEST_CASE("what is reserved can't be had by others, and ends with who reserved it") {
    const LedgerFolder folder;
    const auto job = [&](const char* name, uint64_t in_use = 0) {
        return [&folder, name, in_use, place = std::make_shared<Place>()](char step) {
            if (step == JobStep::look)
                return place->open(folder) && place->ledger.look(in_use, &place->committed, &place->available)
                           ? Answer::done
                           : Answer::refused;
            if (step != Step::join)
                return gib(place->available / kGiB);
            if (!place->open(folder))
                return Answer::not_opened;
            return answer_of(place->join(name, 6 * kGiB, 6 * kGiB, AccountKind::job, in_use));
        };
    };
    Child a(job("a")), b(job("b")), c(job("c")), again(job("a"));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(b.ask(Step::join) == Answer::joined);
    CHECK(c.ask(Step::join) == Answer::refused);
    CHECK(c.ask(JobStep::read_available) == gib(4));
    Child watcher(job("w"));
    CHECK(watcher.ask(JobStep::look) == Answer::done);  // sees what could be had, and has none of it
    CHECK(watcher.ask(JobStep::read_available) == gib(4));
    CHECK(again.ask(Step::join) == Answer::joined);  // another process of a job has the job's reservation
    a.kill();
    CHECK(c.ask(Step::join) == Answer::refused);  // the job lives on in its other process
    again.kill();
    CHECK(watcher.ask(JobStep::look) == Answer::done);
    CHECK(watcher.ask(JobStep::read_available) == gib(10));
    CHECK(c.ask(Step::join) == Answer::joined);

    SECTION("memory that is used outside cuslice counts as well") {
        Child d(job("d", 11 * kGiB)), e(job("e"));
        b.kill();
        CHECK(d.ask(Step::join) == Answer::refused);
        CHECK(d.ask(JobStep::read_available) == gib(0));  // 16 less 6 reserved less 11 used
        CHECK(e.ask(Step::join) == Answer::joined);
    }
}

TEST_CASE("each account's first member is named as who holds it, in whatever order they came") {
    const LedgerFolder folder;
    const auto job = [&](const char* name) {
        return [&folder, name, place = std::make_shared<Place>()](char) {
            return place->open(folder) && place->join(name, 2 * kGiB, 2 * kGiB, AccountKind::job) == Joined::yes
                       ? Answer::joined
                       : Answer::refused;
        };
    };
    Child a(job("a")), b(job("b")), of_a(job("a")), c(job("c"));
    for (Child* child : {&a, &b, &of_a, &c})
        REQUIRE(child->ask(Step::join) == Answer::joined);
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.ledger.look(0, &place.committed, &place.available));
    REQUIRE(place.committed.count == 3);
    CHECK(place.committed.holders[0].pid == a.pid());
    CHECK(place.committed.holders[1].pid == b.pid());
    CHECK(place.committed.holders[2].pid == c.pid());
    CHECK(place.committed.promised == 6 * kGiB);
    a.kill();
    REQUIRE(place.ledger.look(0, &place.committed, &place.available));
    REQUIRE(place.committed.count == 3);
    CHECK(place.committed.holders[0].pid == of_a.pid());
}

TEST_CASE("whoever finds its job claimed and undecided waits for the answer, and not for ever") {
    const LedgerFolder folder;
    Child first([&, place = std::make_shared<Place>()](char) {
        return place->open(folder) && place->join("job", kGiB, kGiB, AccountKind::job) == Joined::yes ? Answer::joined
                                                                                                      : Answer::refused;
    });
    REQUIRE(first.ask(Step::join) == Answer::joined);
    const Mapped mapped(folder);
    mapped.file->accounts[0].state.store(AccountState::claimed);
    Place second;
    REQUIRE(second.open(folder));
    CHECK(second.join("job", kGiB, kGiB, AccountKind::job) == Joined::unavailable);
    CHECK(std::string(second.failure.text) == "another process of the same job is being admitted");
    mapped.file->accounts[0].state.store(AccountState::open);
    CHECK(second.join("job", kGiB, kGiB, AccountKind::job) == Joined::yes);
}

TEST_CASE("a process is in so many accounts at most, and is told when there are too many") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    constexpr unsigned kMost = 8;
    Membership memberships[kMost + 1];
    const auto join = [&](unsigned i) {
        const std::string name = "group" + std::to_string(i);
        Request request;
        request.kind = AccountKind::group;
        request.name = name.c_str();
        return place.ledger.join(request, 0, &memberships[i], &place.committed, &place.available, &place.failure);
    };
    for (unsigned i = 0; i < kMost; i++)
        CHECK(join(i) == Joined::yes);
    CHECK(join(kMost) == Joined::unavailable);
    CHECK_FALSE(memberships[kMost].there());
    CHECK(std::string(place.failure.text) == "too many accounts for one process");
    CHECK(memberships[0].reserve(kGiB, 0, nullptr));
    place.ledger.close();
}

TEST_CASE("two users, with nothing set up by an administrator: what one reserves the other can't have") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
    const auto user = [&](unsigned id, const char* name) {
        return [&folder, id, name, place = std::make_shared<Place>()](char step) -> char {
            if (step == Step::become_other_user)
                return setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0 ? Answer::done : Answer::refused;
            if (step == JobStep::read_available)
                return gib(place->available / kGiB);
            if (step == JobStep::read_first_holder)
                return digit(place->committed.holders[0].user % 10);
            if (!place->open(folder))
                return Answer::not_opened;
            return answer_of(place->join(name, 10 * kGiB, 10 * kGiB, AccountKind::job));
        };
    };
    Child alice(user(60001, "a")), bob(user(60002, "b"));
    REQUIRE(alice.ask(Step::become_other_user) == Answer::done);
    REQUIRE(bob.ask(Step::become_other_user) == Answer::done);
    CHECK(alice.ask(Step::join) == Answer::joined);
    CHECK(bob.ask(Step::join) == Answer::refused);
    CHECK(bob.ask(JobStep::read_available) == gib(6));
    CHECK(bob.ask(JobStep::read_first_holder) == digit(60001 % 10));
    alice.kill();
    CHECK(bob.ask(Step::join) == Answer::joined);

    // A file that bears another user's name than its owner's is not believed.
    Child forger(user(60001, "c"));
    REQUIRE(forger.ask(Step::become_other_user) == Answer::done);
    CHECK(forger.ask(Step::join) == Answer::refused);
    std::filesystem::rename(folder.file_of(60002), folder.file_of(60003));
    CHECK(forger.ask(Step::join) == Answer::joined);
}

TEST_CASE("two users who claim the same memory at once: one has it") {
    if (!can_be_other_users())
        return;
    const int count = rounds(40, 1000);
    int both = 0, neither = 0;
    for (int i = 0; i < count; i++) {
        const LedgerFolder folder;
        std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
        const auto user = [&](unsigned id) {
            return [&folder, id, place = std::make_shared<Place>()](char) -> char {
                if (geteuid() == 0)
                    return setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0 ? Answer::done : Answer::refused;
                if (!place->open(folder))
                    return Answer::not_opened;
                return place->join("j", 10 * kGiB, 10 * kGiB, AccountKind::job) == Joined::yes ? Answer::joined
                                                                                               : Answer::refused;
            };
        };
        Child a(user(60001)), b(user(60002));
        REQUIRE(a.ask(Step::become_other_user) == Answer::done);
        REQUIRE(b.ask(Step::become_other_user) == Answer::done);
        a.tell(Step::join), b.tell(Step::join);
        const char one = a.hear(), other = b.hear();
        both += one == Answer::joined && other == Answer::joined;
        neither += one == Answer::refused && other == Answer::refused;
    }
    CHECK(both == 0);
    CHECK(neither == 0);
}

TEST_CASE("a file that is no ledger of this version is replaced, and said to be") {
    const LedgerFolder folder;
    const std::string what = GENERATE("empty", "short", "zeros", "garbage", "another version", "another GPU");
    CAPTURE(what);
    {
        Place place;
        REQUIRE(place.open(folder));
        CHECK(place.ledger.found() == Found::made);
    }
    {
        Place place;
        REQUIRE(place.open(folder));
        CHECK(place.ledger.found() == Found::good);
    }
    if (what == "empty" || what == "short")
        std::filesystem::resize_file(folder.file(), what == "empty" ? 0 : 5000);
    std::fstream file(folder.file(), std::ios::in | std::ios::out | std::ios::binary);
    if (what == "zeros")
        file.write(std::string(4096, '\0').c_str(), 4096);
    if (what == "garbage")
        file.write(std::string(4096, '\xa5').c_str(), 4096);
    const uint32_t newer = kVersion + 1;
    if (what == "another version")
        file.seekp(offsetof(Header, version)).write(reinterpret_cast<const char*>(&newer), sizeof newer);
    if (what == "another GPU")
        file.seekp(offsetof(Header, uuid)).write("GPU-9", 5);
    file.close();
    Place place, second;
    REQUIRE(place.open(folder));
    CHECK(place.ledger.found() == Found::rebuilt);
    CHECK(place.join("lab", kGiB) == Joined::yes);
    REQUIRE(second.open(folder));
    CHECK(second.ledger.found() == Found::good);
    CHECK(folder.count() == 1);
}

TEST_CASE("where no file can be made it is said why") {
    const LedgerFolder folder;
    Place place;
    LedgerError failure;
    CHECK_FALSE(place.ledger.open((folder.path + "/no/such").c_str(), kUuid, kCapacity, false, &failure));
    CHECK(std::string(failure.text).find("No such file or directory") != std::string::npos);
    const std::string open_to_all = folder.path + "/open";
    REQUIRE(mkdir(open_to_all.c_str(), 0777) == 0);
    REQUIRE(chmod(open_to_all.c_str(), 0777) == 0);
    LedgerError anybody;
    CHECK_FALSE(place.ledger.open(open_to_all.c_str(), kUuid, kCapacity, false, &anybody));
    CHECK(std::string(anybody.text) ==
          "everybody may delete files in (chmod +t it) " + open_to_all + ": Operation not permitted");
    REQUIRE(chmod(open_to_all.c_str(), 01777) == 0);
    const std::string link_to_it = folder.path + "/link";
    REQUIRE(symlink(open_to_all.c_str(), link_to_it.c_str()) == 0);
    LedgerError linked;
    CHECK_FALSE(place.ledger.open(link_to_it.c_str(), kUuid, kCapacity, false, &linked));
    // A link that somebody else put there is not followed.
    REQUIRE(symlink("/dev/shm/cuslice-elsewhere", folder.file().c_str()) == 0);
    LedgerError link;
    CHECK_FALSE(place.ledger.open(folder.path.c_str(), kUuid, kCapacity, false, &link));
    CHECK(std::string(link.text).find(folder.file()) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists("/dev/shm/cuslice-elsewhere"));
    // Nor can everybody make files in every folder.
    LedgerError denied;
    CHECK_FALSE(place.ledger.open("/sys", kUuid, kCapacity, false, &denied));
    CHECK(std::string(denied.text).starts_with("can't make a file in /sys: "));
}

TEST_CASE("a ledger that has to be there already is not made, and it is said why it is of no use") {
    const LedgerFolder folder;
    Place place;
    const auto why = [&] {
        LedgerError failure;
        CHECK_FALSE(place.ledger.open_existing(folder.path.c_str(), kUuid, &failure));
        CHECK_FALSE(place.ledger.opened());
        return std::string(failure.text);
    };
    CHECK(why() == "can't open " + folder.file() + ": No such file or directory");
    CHECK(std::filesystem::is_empty(folder.path));
    std::ofstream(folder.file()) << "text";
    CHECK(why() == folder.file() + " is damaged");
    CHECK(std::filesystem::file_size(folder.file()) == 4);
    std::filesystem::remove(folder.file());
    REQUIRE(mkfifo(folder.file().c_str(), 0600) == 0);
    CHECK(why() == folder.file() + " is no regular file");
    std::filesystem::remove(folder.file());
    Place maker;
    REQUIRE(maker.open(folder));
    LedgerError failure;
    CHECK(place.ledger.open_existing(folder.path.c_str(), kUuid, &failure));
    CHECK(place.ledger.opened());
    CHECK(place.ledger.found() == Found::good);
    CHECK(place.ledger.capacity() == kCapacity);
    CHECK(place.ledger.id() == maker.ledger.id());
}

TEST_CASE("the file can be read by everybody and written by its owner alone, a named folder is one user's") {
    const LedgerFolder folder;
    const std::string inner = folder.path + "/shared";
    const mode_t before = umask(077);
    Place place;
    LedgerError failure;
    const bool opened = place.ledger.open(inner.c_str(), kUuid, kCapacity, false, &failure);
    umask(before);
    REQUIRE(opened);
    struct stat info {};
    REQUIRE(stat(inner.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
    for (const auto& entry : std::filesystem::directory_iterator(inner)) {
        REQUIRE(stat(entry.path().c_str(), &info) == 0);
        CHECK((info.st_mode & 07777) == 0644);
    }
}
