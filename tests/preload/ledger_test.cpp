// SPDX-License-Identifier: Apache-2.0
// Programs and the file that they share a slice in: an exec, strangers in the folder, a file that is lost.
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH;

std::string bytes(uint64_t count) { return std::to_string(count); }

Words launch(const Words& options, const Words& program) {
    Words words{kLaunch, "run", "--fake", "1xlaptop-2g", "--headroom", "16MiB"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return words;
}

Words outside(const Folder& books) { return plain({"CUSLICE_FAKE_DIR=" + books.path()}); }

// A command that is ended if it hangs, for far longer than anything here is waited for.
Outcome run_guarded(Words words, const Words& environment) {
    words.insert(words.begin(), {"/usr/bin/env", "timeout", "120"});
    return run(words, environment);
}

Outcome ps(const Folder& books) {
    return run_guarded({kLaunch, "ps", "--json", "--fake", "1xlaptop-2g"}, outside(books));
}

Json holders(const Folder& books) { return Json::parse(ps(books).out)["processes"]; }

// The user's only ledger.
std::string ledger_in(const Folder& books) {
    for (const auto& entry : std::filesystem::directory_iterator(books.path() + "/ledger"))
        if (entry.path().extension() == ".ledger")
            return entry.path().string();
    return "";
}

}  // namespace

TEST_CASE("what a program held is no more charged once it has become another one") {
    const Folder books;
    const std::string group = GENERATE("", "lab");
    Words options{"--limit", "1GiB"};
    if (!group.empty())
        options.insert(options.end(), {"--group", group});
    Guest guest(launch(options, Guest::route("linked")), outside(books));
    uint64_t free = 0;
    for (int image = 0; image < 6; image++) {
        CAPTURE(image);
        use_device(guest);
        if (image == 0)
            free = guest.number("info");
        CHECK(guest.number("info") == free);
        CHECK(guest.code("alloc x " + bytes(300 << 20)) == kSuccess);
        for (const auto& row : holders(books))
            CHECK(row["used"] == books_of(books.path(), guest.pid()).used);
        REQUIRE(guest.code("exec linked") == kSuccess);
    }
    // Its job's slice is its own all the while.
    CHECK(guest.code("init") == kSuccess);
    CHECK(run(launch({"--limit", "1500MiB"}, {"/bin/true"}), outside(books)).exit_code == 75);
}

TEST_CASE("strangers in the ledgers' folder keep nobody waiting, and ps says what it could not look at") {
    if (!can_be_other_users())
        return;
    const Folder books;
    REQUIRE(run(launch({"--limit", "1GiB"}, {"/bin/true"}), outside(books)).exit_code == 0);
    const std::filesystem::path own = ledger_in(books);
    const bool mine = GENERATE(false, true);
    CAPTURE(mine);
    const std::string name = own.filename().string();
    const std::string path =
        mine ? own.string() : (own.parent_path() / ("60002" + name.substr(name.find('-')))).string();
    if (mine)
        std::filesystem::remove(own);
    REQUIRE(mkfifo(path.c_str(), 0666) == 0);
    REQUIRE(chown(path.c_str(), 60002, 60002) == 0);
    const Outcome started = run_guarded(launch({"--limit", "1GiB"}, {"/bin/echo", "started"}), outside(books));
    CHECK(started.out == "started\n");
    CHECK(started.err.find(path) == std::string::npos);
    const Outcome listed = ps(books);
    // Under this user's name it is nobody's ledger.
    CHECK(listed.err == (mine ? "" : "cuslice: ps: " + path + " is no regular file\n"));
    CHECK(listed.exit_code == 0);
    const Outcome table = run_guarded({kLaunch, "ps", "--fake", "1xlaptop-2g"}, outside(books));
    CHECK((table.out.find("No job or group") != std::string::npos) == mine);
}

TEST_CASE("a ledger that is written over while its job runs doubles no limit") {
    const Folder books;
    Guest a(launch({"--limit", "1GiB"}, Guest::route("linked")), outside(books));
    a.let_change("free", "who is refused looks for the ledger, and finds who else is in it");
    use_device(a);
    REQUIRE(a.code("alloc x " + bytes(400 << 20)) == kSuccess);
    const std::string job = a.ask("getenv CUSLICE_JOB").substr(1);
    const Words more{"CUSLICE_LIMIT=1GiB", "CUSLICE_HEADROOM=16MiB", "CUSLICE_JOB=" + job};
    Guest b(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), more));
    REQUIRE(b.code("init") == kSuccess);
    std::fstream(ledger_in(books), std::ios::in | std::ios::out) << std::string(700, 'e');
    // Nobody of the job has been there since: the one that is new can't know who else is in it.
    CHECK(b.code("retain 0") == kOutOfMemory);
    REQUIRE(b.complaints().size() == 1);
    CHECK(b.complaints()[0].find("was removed or damaged") != std::string::npos);
    // The limit is not in the file that counts any more.
    CHECK(a.number("total 0") == 1 << 30);
    CHECK(a.code("alloc y " + bytes(700 << 20)) == kOutOfMemory);  // looks, and puts it back
    enter_device(b);
    CHECK(b.number("info") == a.number("info"));
    CHECK(b.code("alloc y " + bytes(200 << 20)) == kOutOfMemory);
    CHECK(books_of(books.path(), a.pid()).used + books_of(books.path(), b.pid()).used <= 1 << 30);
    CHECK(holders(books).size() == 2);
}

TEST_CASE("a ledger that is removed while its job runs doubles no limit, whoever of the job takes memory then") {
    const Folder books;
    constexpr uint64_t kLimit = 1500ull << 20;
    Guest idle(launch({"--limit", "1500MiB"}, Guest::route("linked")), outside(books));
    const std::string job = "CUSLICE_JOB=" + idle.ask("getenv CUSLICE_JOB").substr(1);
    const Words member{"CUSLICE_LIMIT=1500MiB", "CUSLICE_HEADROOM=16MiB", job};
    Guest active(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), member));
    for (Guest* guest : {&idle, &active}) {
        guest->let_change("free", "who is refused looks for the ledger, and finds who else is in it");
        use_device(*guest);
    }
    REQUIRE(idle.code("alloc x " + bytes(400 << 20)) == kSuccess);
    REQUIRE(active.code("alloc x " + bytes(100 << 20)) == kSuccess);
    std::filesystem::remove(ledger_in(books));
    Guest newcomer(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), member));
    use_device(newcomer);
    const auto together = [&] {
        uint64_t sum = 0;
        for (Guest* guest : {&idle, &active, &newcomer})
            sum += books_of(books.path(), guest->pid()).used;
        return sum;
    };
    CHECK(newcomer.code("fill " + bytes(1 << 20)) == kOutOfMemory);
    CHECK(together() <= kLimit);
    CHECK(together() > kLimit - (32 << 20));
    // The active member has not noticed the removal either, and is not refused what the limit allows.
    CHECK(active.code("alloc y " + bytes(64 << 20)) == kOutOfMemory);
    CHECK(newcomer.code("freeall") == kSuccess);
    CHECK(active.code("alloc y " + bytes(64 << 20)) == kSuccess);
    CHECK(active.number("info") == newcomer.number("info"));
    CHECK(holders(books).size() == 3);
    SECTION("what the idle one frees then can be had") {
        CHECK(idle.code("free x") == kSuccess);
        CHECK(idle.number("info") > 0);  // looks
        CHECK(newcomer.code("alloc y " + bytes(400 << 20)) == kSuccess);
    }
    SECTION("what the idle one held can be had once it is killed") {
        idle.kill(SIGKILL);
        idle.finish();
        CHECK(newcomer.code("alloc y " + bytes(400 << 20)) == kSuccess);
    }
    SECTION("and what it held is not charged to the program that it becomes") {
        CHECK(idle.code("exec linked") == kSuccess);
        CHECK(idle.code("init") == kSuccess);
        CHECK(idle.code("retain 0") == kSuccess);
        CHECK(newcomer.code("alloc y " + bytes(400 << 20)) == kSuccess);
    }
    for (Guest* guest : {&idle, &active, &newcomer})
        for (const std::string& line : guest->complaints())
            CHECK(line.find("ledger") == line.npos);
}

TEST_CASE("a program that takes and frees all the time notices by itself that its ledger was removed") {
    const Folder books;
    Guest guest(launch({"--limit", "1GiB"}, Guest::route("linked")), outside(books));
    use_device(guest);
    std::filesystem::remove(ledger_in(books));
    // Within a second of its own clock; nothing is refused meanwhile.
    for (int i = 0; i < 6000 && ledger_in(books).empty(); i++) {
        REQUIRE(guest.code("alloc x " + bytes(1 << 20)) == kSuccess);
        REQUIRE(guest.code("free x") == kSuccess);
        usleep(1000);
    }
    CHECK_FALSE(ledger_in(books).empty());
    CHECK(holders(books).size() == 1);
    CHECK(guest.complaints().empty());
}

TEST_CASE("a job's reservation outlives its ledger's removal, also where the launcher's program uses no GPU") {
    const Folder books;
    Guest guest(launch({"--limit", "1GiB"}, Guest::route("linked")), outside(books));
    REQUIRE(guest.pid() > 0);
    std::filesystem::remove(ledger_in(books));
    CHECK(run(launch({"--limit", "1500MiB"}, {"/bin/true"}), outside(books)).exit_code == 75);
    REQUIRE(guest.code("exec linked") == kSuccess);
    CHECK(run(launch({"--limit", "1500MiB"}, {"/bin/true"}), outside(books)).exit_code == 75);
    retain_device(guest);
    CHECK(holders(books).size() == 1);
    CHECK(run(launch({"--limit", "1500MiB"}, {"/bin/true"}), outside(books)).exit_code == 75);
    guest.kill(SIGKILL);
    guest.finish();
    const Outcome last = run(launch({"--limit", "1500MiB"}, {"/bin/true"}), outside(books));
    CAPTURE(last.err);
    CHECK(last.exit_code == 0);
}

TEST_CASE("no descriptor of a ledger is one that programs take for a stream") {
    const Folder books;
    Words words = launch({"--limit", "1GiB"}, {"/bin/ls", "-l", "/proc/self/fd"});
    std::string line = "exec";
    for (const std::string& word : words)
        line += " '" + word + "'";
    const Outcome outcome = run({"/bin/sh", "-c", line + " <&- 2>&-"}, outside(books));
    CAPTURE(outcome.out);
    REQUIRE(outcome.out.find(".ledger") != std::string::npos);
    for (const std::string& one : split_lines(outcome.out)) {
        const size_t arrow = one.find(" -> ");
        if (arrow == one.npos || one.find(".ledger") == one.npos)
            continue;
        CHECK(std::stoi(one.substr(one.rfind(' ', arrow - 1) + 1)) >= 10);
    }
}

TEST_CASE("users of rootless containers have ledgers of their own, named as outside") {
    const Folder books;
    std::filesystem::permissions(books.path(), std::filesystem::perms(01777));
    const auto as = [&](const Words& program, const char* user) {
        Words words{"/usr/bin/env",   "setpriv", "--reuid",        user, "--regid", user,
                    "--clear-groups", "unshare", "--map-root-user"};
        words.insert(words.end(), program.begin(), program.end());
        return words;
    };
    if (!can_be_other_users() || !can_unshare(CLONE_NEWUSER, 60001) || !can_let_others_in())
        return;
    std::filesystem::create_directory(books.path() + "/shared");
    std::filesystem::permissions(books.path() + "/shared", std::filesystem::perms(01777));
    // Each with books of its own: what is shared is the ledgers' folder alone.
    const auto in_books = [&](const char* name) {
        std::filesystem::create_directory(books.path() + "/" + name);
        std::filesystem::permissions(books.path() + "/" + name, std::filesystem::perms(0777));
        return plain({"CUSLICE_DIR=" + books.path() + "/shared", "CUSLICE_FAKE_DIR=" + books.path() + "/" + name});
    };
    Guest a(as(launch({"--limit", "1200MiB"}, {"/bin/sh", "-c", "read line; echo up; read line"}), "60001"),
            in_books("a"));
    REQUIRE(a.ask("go") == "up");
    const Outcome b = run(as(launch({"--limit", "1200MiB"}, {"/bin/echo", "started"}), "60002"), in_books("b"));
    CHECK(b.err.find("cuslice: GPU 0: 1200.0 MiB requested") == 0);
    CHECK(b.err.find("user 60001") != std::string::npos);
    CHECK(b.exit_code == 75);
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(books.path() + "/shared")) {
        const std::string name = entry.path().filename().string();
        files += name.ends_with(".ledger") && (name.starts_with("60001-") || name.starts_with("60002-"));
    }
    CHECK(files == 2);
}

}  // namespace cuslice::tests
