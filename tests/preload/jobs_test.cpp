// SPDX-License-Identifier: Apache-2.0
// One limit for several processes: a job's, a group's. The books of the GPU, which know nothing of cuslice, are the
// reference: together the members never hold more than the limit.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/preload/user_name.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH;

std::string bytes(uint64_t count) { return std::to_string(count); }

std::unique_ptr<Guest> in_job(const Folder& books, const Words& more, const std::string& fake = "1xlaptop-2g") {
    Words settings{"CUSLICE_HEADROOM=16MiB"};
    settings.insert(settings.end(), more.begin(), more.end());
    auto guest = std::make_unique<Guest>(Guest::route("linked"), sliced(fake, books.path(), settings));
    REQUIRE(guest->code("init") == kSuccess);
    return guest;
}

uint64_t held(const Folder& books, Guest& guest) { return books_of(books.path(), guest.pid()).used; }

Words launch(const Words& options, const Words& program) {
    Words words{kLaunch, "run", "--fake", "1xlaptop-2g"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return words;
}

Words outside(const Folder& books) { return plain({"CUSLICE_FAKE_DIR=" + books.path()}); }

Json holders(const Folder& books) {
    const Outcome outcome = run({kLaunch, "ps", "--json", "--fake", "1xlaptop-2g"}, outside(books));
    REQUIRE(outcome.exit_code == 0);
    return Json::parse(outcome.out)["processes"];
}

// Two processes of one job, each with a context.
struct Pair {
    Pair() {
        const Words job{"CUSLICE_LIMIT=1500MiB", "CUSLICE_JOB=shared"};
        for (auto* one : {&a, &b}) {
            *one = in_job(books, job);
            REQUIRE((*one)->code("retain 0") == kSuccess);
        }
    }
    Folder books;
    std::unique_ptr<Guest> a, b;
};

}  // namespace

TEST_CASE("processes of one job share its limit, and a killed one's part is the others' at once") {
    Pair pair;
    auto& [books, a, b] = pair;
    CHECK(a->number("info") == b->number("info"));  // what one could have the other could
    const uint64_t free = a->number("info");
    REQUIRE(a->code("alloc x " + bytes(400 * kMiB)) == kSuccess);
    CHECK(b->number("info") == free - 400 * kMiB);
    CHECK(b->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(held(books, *a) + held(books, *b) <= 1500 * kMiB);
    CHECK(held(books, *a) + held(books, *b) + (16 + 16) * kMiB > 1500 * kMiB);
    CHECK(b->complaints().at(0).find("by other processes (see cuslice ps)") != std::string::npos);
    const uint64_t gone = held(books, *a);
    SECTION("killed") { a->kill(SIGKILL); }
    SECTION("ended") { CHECK(a->finish() == 0); }
    a.reset();
    CHECK(b->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(held(books, *b) <= 1500 * kMiB);
    CHECK(held(books, *b) + (16 + 16) * kMiB > 1500 * kMiB);
    CHECK(gone > 0);
}

TEST_CASE("what a killed member held is there for a context, which is all that another one asks for") {
    Pair pair;
    auto& [books, a, b] = pair;
    REQUIRE(b->code("release 0") == kSuccess);
    REQUIRE(a->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(b->code("retain 0") == kOutOfMemory);
    a->kill(SIGKILL);
    a.reset();
    CHECK(b->code("retain 0") == kSuccess);
}

TEST_CASE("what a killed member held is shown as free again, also where nobody is refused") {
    Pair pair;
    auto& [books, a, b] = pair;
    const uint64_t free = b->number("info");
    REQUIRE(a->code("alloc x " + bytes(400 * kMiB)) == kSuccess);
    REQUIRE(b->number("info") == free - 400 * kMiB);
    a->kill(SIGKILL);
    a.reset();
    CHECK(soon([&] { return b->number("info") > free; }));  // and what its context took
}

TEST_CASE("processes that use the same part of a GPU share its limit, and not another part's") {
    Folder books;
    const Words job{"CUSLICE_SPLIT=0=1200MiB+512MiB", "CUSLICE_JOB=shared"};
    auto a = in_job(books, job), b = in_job(books, job);
    for (Guest* guest : {a.get(), b.get()})
        for (const char* part : {"0", "1"})
            REQUIRE(guest->code(std::string("retain ") + part) == kSuccess);
    REQUIRE(a->code("current 0") == kSuccess);
    REQUIRE(b->code("current 0") == kSuccess);
    REQUIRE(a->code("alloc most " + bytes(600 << 20)) == kSuccess);
    CHECK(b->code("alloc more " + bytes(300 << 20)) == kOutOfMemory);
    REQUIRE(b->code("current 1") == kSuccess);
    CHECK(b->code("alloc other " + bytes(300 << 20)) == kSuccess);
    REQUIRE(a->code("current 1") == kSuccess);
    CHECK(a->code("alloc other " + bytes(300 << 20)) == kOutOfMemory);
    // Memory that a killed member held on either partition is the others' at once.
    b->kill(SIGKILL);
    b->finish();
    CHECK(a->code("alloc other " + bytes(300 << 20)) == kSuccess);
    CHECK(held(books, *a) <= 1712 * kMiB);
}

TEST_CASE("what the parts of a GPU hold is the job's on the whole GPU, and in its limit") {
    Folder books;
    const Words job{"CUSLICE_LIMIT=1500MiB", "CUSLICE_SPLIT=0=1GiB+1GiB", "CUSLICE_OVERSUBSCRIBE=yes",
                    "CUSLICE_JOB=shared"};
    auto a = in_job(books, job), b = in_job(books, job);
    REQUIRE(a->code("retain 0") == kSuccess);
    REQUIRE(b->code("retain 1") == kSuccess);
    REQUIRE(a->code("alloc most " + bytes(500 << 20)) == kSuccess);
    CHECK(b->code("alloc more " + bytes(500 << 20)) == kOutOfMemory);  // within its part, and not within the whole
    CHECK(b->code("alloc more " + bytes(300 << 20)) == kSuccess);
    CHECK(held(books, *a) + held(books, *b) <= 1500 * kMiB);
    uint64_t parts = 0, whole = 0;
    for (const auto& row : holders(books)) {
        const bool is_whole = row["limit"] == 1500 * kMiB;
        if (row["pid"] == a->pid() || row["pid"] == b->pid())
            (is_whole ? whole : parts) += row["used"].get<uint64_t>();
    }
    CHECK(whole == parts);
    CHECK(whole >= 800 * kMiB);
    // For another job it is no use of the GPU outside of all of them.
    const Outcome other = run(launch({"--limit", "450MiB"}, {"/bin/true"}), outside(books));
    CHECK(other.err.empty());
    CHECK(other.exit_code == 0);
}

TEST_CASE("a context that no longer fits into the job's slice is refused") {
    const Folder books;
    const Words job{"CUSLICE_LIMIT=700MiB", "CUSLICE_JOB=shared"};
    auto a = in_job(books, job), b = in_job(books, job);
    REQUIRE(a->code("retain 0") == kSuccess);
    REQUIRE(a->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(b->code("retain 0") == kOutOfMemory);
    CHECK(held(books, *b) == 0);
    CHECK(held(books, *a) <= 700 * kMiB);
}

TEST_CASE("jobs of one group share the group's limit, which can be set while they run") {
    const Folder books;
    const Words group{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1200MiB"};
    auto a = in_job(books, group), b = in_job(books, group);
    REQUIRE(a->code("retain 0") == kSuccess);
    REQUIRE(b->code("retain 0") == kSuccess);
    REQUIRE(a->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(b->code("alloc y " + bytes(32 * kMiB)) == kOutOfMemory);
    CHECK(held(books, *a) + held(books, *b) <= 1200 * kMiB);
    const auto set = [&](const std::string& name, const std::string& limit) {
        return run({kLaunch, "set", "--group", name, "--limit", limit, "--fake", "1xlaptop-2g"}, outside(books));
    };
    CHECK(set("lab", "1500MiB").exit_code == 0);
    CHECK(b->code("alloc y " + bytes(200 * kMiB)) == kSuccess);
    CHECK(b->number("total 0") == 1500 * kMiB);
    CHECK(set("lab", "1000MiB").exit_code == 0);
    CHECK(b->code("alloc z " + bytes(kMiB)) == kOutOfMemory);
    CHECK(b->number("info") == 0);
    CHECK(b->code("free y") == kSuccess);
    const Outcome nobody = set("nobody", "1GiB");
    CHECK(nobody.exit_code == 69);
    CHECK(
        nobody.err ==
        "cuslice: set: no program runs in a group nobody, so there is no limit to change; cuslice ps shows what there "
        "is\n");
}

TEST_CASE("programs that see the same root folder share their slice in the group @container") {
    const Folder books;
    const Words group{"CUSLICE_GROUP=@container", "CUSLICE_LIMIT=1GiB"};
    auto a = in_job(books, group), b = in_job(books, group);
    REQUIRE(a->code("retain 0") == kSuccess);
    REQUIRE(b->code("retain 0") == kSuccess);
    CHECK(a->number("total 0") == kGiB);
    REQUIRE(a->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(b->code("alloc y " + bytes(32 * kMiB)) == kOutOfMemory);
    CHECK(held(books, *a) + held(books, *b) <= kGiB);
    CHECK(held(books, *a) + held(books, *b) > kGiB - 64 * kMiB);
    // It has a limit that can be changed, as any group.
    const Outcome set =
        run({kLaunch, "set", "--group", "@container", "--limit", "500MiB", "--fake", "1xlaptop-2g"}, outside(books));
    CHECK(set.exit_code == 0);
    CHECK(set.out.find(": group container-") != std::string::npos);
    CHECK(b->number("info") == 0);
}

TEST_CASE("a process that has a limit of its own keeps to it in a group that has more") {
    const Folder books;
    const Words group{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1200MiB", "CUSLICE_LIMIT=700MiB"};
    const Words options{"--per-process", "--limit", "700MiB",        "--headroom", "16MiB",
                        "--group",       "lab",     "--group-limit", "1200MiB"};
    const bool launched = GENERATE(false, true);
    CAPTURE(launched);
    const auto begin = [&] {
        if (!launched)
            return in_job(books, group);
        auto guest = std::make_unique<Guest>(launch(options, Guest::route("linked")), outside(books));
        REQUIRE(guest->code("init") == kSuccess);
        return guest;
    };
    auto a = begin(), b = begin();
    REQUIRE(a->code("retain 0") == kSuccess);
    CHECK(a->number("total 0") == 700 * kMiB);
    CHECK(a->number("info") == 700 * kMiB - 16 * kMiB - held(books, *a));
    CHECK(a->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(held(books, *a) <= 700 * kMiB);
    CHECK(held(books, *a) > 660 * kMiB);
    CHECK(a->code("module m " + bytes(100 * kMiB)) == kOutOfMemory);
    CHECK(held(books, *a) <= 700 * kMiB);
    // The group has less left than the other process's own limit.
    REQUIRE(b->code("retain 0") == kSuccess);
    CHECK(b->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    const uint64_t together = held(books, *a) + held(books, *b);
    CHECK(together <= 1200 * kMiB);
    CHECK(together > 1160 * kMiB);
}

TEST_CASE("the limit of a group that its last member has left can't be set: whoever comes next brings one along") {
    const Folder books;
    const auto set = [&](const Words& more) {
        Words words{kLaunch, "set", "--group", "lab", "--fake", "1xlaptop-2g"};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, outside(books));
    };
    {
        auto member = in_job(books, {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1200MiB"});
        REQUIRE(member->code("retain 0") == kSuccess);
        CHECK(set({"--limit", "1GiB"}).out.find("group lab: 1024.0 MiB\n") != std::string::npos);
        CHECK(member->finish() == 0);
    }
    const Outcome gone = set({"--limit", "1GiB"});
    CHECK(gone.exit_code == 69);
    CHECK(gone.out.empty());
    CHECK(gone.err ==
          "cuslice: set: no program runs in a group lab, so there is no limit to change; cuslice ps shows what there "
          "is\n");
    const Outcome unsaid = set({});
    CHECK(unsaid.exit_code == 64);
    CHECK(unsaid.err == "cuslice: set: a limit is needed: cuslice set --group lab --limit SIZE\n");
}

TEST_CASE("who joins a living group with another limit is told which one holds, and how to change it") {
    const Folder books;
    const Words guest = Guest::route("linked");
    const auto start = [&](const std::string& limit, const std::string& group = "lab") {
        auto one = std::make_unique<Guest>(launch({"--group", group, "--group-limit", limit}, guest), outside(books));
        retain_device(*one);
        return one;
    };
    const auto said = [](Guest& one) {
        CHECK(one.finish() == 0);
        return one.complaints();
    };
    auto first = start("1200MiB");
    auto same = start("1200MiB"), elsewhere = start("1GiB", "other");
    CHECK(said(*same).empty());
    CHECK(said(*elsewhere).empty());
    auto more = start("1500MiB");
    CHECK(more->number("total 0") == 1200 * kMiB);
    const std::string uuid = more->ask("uuid 0").substr(2, 12);
    const Words lines = said(*more);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] ==
          "cuslice: group lab: on " + uuid +
              " its limit is 1200.0 MiB and stays so; the 1500.0 MiB given here are ignored. To change it: cuslice "
              "set --group lab --limit 1500MiB");

    // Not where the limit is the GPU's memory either way, nor where no member is left.
    CHECK(run({kLaunch, "set", "--group", "lab", "--limit", "2002MiB", "--fake", "1xlaptop-2g"}, outside(books))
              .exit_code == 0);
    auto all = start("3GiB");
    CHECK(said(*all).empty());
    CHECK(said(*first).empty());
    auto next = start("1GiB");
    CHECK(next->number("total 0") == kGiB);
    CHECK(said(*next).empty());
}

TEST_CASE("a slice is reserved for its job: the third of three at 0.4 is refused, or waits") {
    const Folder books;
    const Words guest = Guest::route("linked");
    auto first = std::make_unique<Guest>(launch({"--fraction", "0.4"}, guest), outside(books));
    Guest second(launch({"--fraction", "0.4"}, guest), outside(books));
    REQUIRE(first->code("init") == kSuccess);
    REQUIRE(second.code("init") == kSuccess);
    const Outcome third = run(launch({"--fraction", "0.4"}, {"/bin/echo", "started"}), outside(books));
    CHECK(third.exit_code == 75);
    CHECK(third.out.empty());
    CHECK(third.err.find("cuslice: GPU 0: 800.8 MiB requested, 400.4 MiB left. Held: pid ") == 0);
    const std::string user = name_of_this_user();
    CHECK(third.err.find("pid " + std::to_string(first->pid()) + " (guest_linked, user " + user + ") ") !=
          std::string::npos);
    CHECK(third.err.find("pid " + std::to_string(second.pid()) + " (") != std::string::npos);
    CHECK(third.err.find("Try --wait or --limit 400MiB\n") != std::string::npos);
    CHECK(run(launch({"--limit", "400MiB"}, {"/bin/echo", "started"}), outside(books)).out == "started\n");
    CHECK(run(launch({"--fraction", "0.4", "--per-process"}, {"/bin/echo", "started"}), outside(books)).exit_code == 0);
    CHECK(run(launch({"--fraction", "0.4", "--wait=50ms"}, {"/bin/echo", "no"}), outside(books)).exit_code == 75);

    Guest waiting(launch({"--fraction", "0.4", "--wait"}, guest), outside(books));
    REQUIRE(soon([&] { return !waiting.complaints().empty(); }));
    first->kill(SIGKILL);
    CHECK(waiting.code("init") == kSuccess);
    first.reset();
    const std::string told = waiting.complaints().at(0);
    CHECK(told.find("cuslice: waiting for 800.8 MiB on GPU 0, number 1 of 1 in the queue: 400.4 MiB left. Held: ") ==
          0);
    CHECK(told.find("Try ") == std::string::npos);  // it does so already
    CHECK(waiting.code("retain 0") == kSuccess);
}

TEST_CASE("memory that is held outside cuslice can't be reserved") {
    const Folder books;
    Guest plain_guest(Guest::route("linked"), raw("1xlaptop-2g", books.path()));
    retain_device(plain_guest);
    REQUIRE(plain_guest.code("alloc x " + bytes(1000 * kMiB)) == kSuccess);
    const Outcome refused = run(launch({"--limit", "1GiB"}, {"/bin/echo", "started"}), outside(books));
    CHECK(refused.exit_code == 75);
    CHECK(refused.err.find("Held: outside cuslice 1300.0 MiB") != std::string::npos);
    CHECK(run(launch({"--limit", "512MiB"}, {"/bin/echo", "started"}), outside(books)).exit_code == 0);
}

TEST_CASE("the reservation lives as long as its program, and the program's children that use the GPU") {
    const Folder books;
    const std::string guest = kGuests + "/guest_linked linked";
    const auto reserved = [&] { return holders(books).size(); };
    pid_t left_behind = 0;
    SECTION("a shell that becomes the program") {
        Guest shell(launch({"--fraction", "0.4"}, {"/bin/sh", "-c", "exec " + guest}), outside(books));
        retain_device(shell);
        const auto now = holders(books);
        REQUIRE(now.size() == 1);  // the launcher's place, which the program goes on with
        CHECK(now[0]["pid"] == shell.pid());
        CHECK(now[0]["used"] == held(books, shell));
        CHECK(shell.finish() == 0);
    }
    SECTION("a child of the program") {
        Guest shell(launch({"--fraction", "0.4"}, {"/bin/sh", "-c", guest + "; exit $?"}), outside(books));
        REQUIRE(shell.code("init") == kSuccess);
        CHECK(reserved() == 1);
        REQUIRE(shell.code("retain 0") == kSuccess);
        const auto now = holders(books);
        REQUIRE(now.size() == 2);
        CHECK(now[0]["name"] == now[1]["name"]);
        CHECK(now[0]["together"] == held(books, shell));
        kill(now[0]["pid"] == shell.pid() ? now[1]["pid"].get<int>() : now[0]["pid"].get<int>(), SIGKILL);
        CHECK(soon([&] { return reserved() == 1; }));  // the shell is gone, its child holds the slice
        CHECK(run(launch({"--fraction", "0.8"}, {"/bin/true"}), outside(books)).exit_code == 75);
        CHECK(shell.code("alloc x 1000") == kSuccess);
    }
    SECTION("a program that leaves a child behind that does not use the GPU") {
        const std::string script = "sleep 1000 >/dev/null 2>&1 & echo $!";
        const Outcome parent = run(launch({"--fraction", "0.4"}, {"/bin/sh", "-c", script}), outside(books));
        REQUIRE(parent.exit_code == 0);
        left_behind = std::stoi(parent.out);
    }
    CHECK(soon([&] { return reserved() == 0; }));
    CHECK(run(launch({"--fraction", "1"}, {"/bin/true"}), outside(books)).exit_code == 0);
    if (left_behind)
        CHECK(kill(left_behind, SIGKILL) == 0);  // it was there all the time
}

TEST_CASE("on several GPUs a slice is reserved where a context is made, and nowhere else") {
    const Folder books;
    Words words = launch({"--fraction", "0.6"}, Guest::route("linked"));
    words[3] = "4xlaptop-2g";
    Guest guest(words, outside(books)), other(words, outside(books));
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(other.code("init") == kSuccess);
    CHECK(holders(books).size() == 0);
    REQUIRE(guest.code("retain 2") == kSuccess);
    const auto now = holders(books);
    REQUIRE(now.size() == 1);
    CHECK(now[0]["gpu"] == split_words(guest.ask("uuid 2")).at(1));
    CHECK(other.code("retain 2") == kOutOfMemory);
    CHECK(other.complaints().at(0).find(" requested, ") != std::string::npos);
    CHECK(other.code("retain 3") == kSuccess);
}

TEST_CASE("where there is no place for a ledger, nothing is granted to who would share a limit, and a line says so") {
    const Folder books;
    const Words nowhere{"CUSLICE_LIMIT=700MiB", "CUSLICE_DIR=/proc/nowhere"};
    auto a = in_job(books, {nowhere[0], nowhere[1], "CUSLICE_JOB=shared"});
    CHECK(a->code("retain 0") == kOutOfMemory);
    CHECK(held(books, *a) == 0);
    const Words said = a->complaints();
    REQUIRE(said.size() == 1);
    CHECK(
        said[0].find("the limit can't be shared with other processes, so every allocation fails: can't make the folder "
                     "/proc/nowhere: ") != std::string::npos);
    // A limit of a process's own needs none.
    auto alone = in_job(books, nowhere);
    CHECK(alone->code("retain 0") == kSuccess);
    CHECK(alone->complaints().empty());
}

TEST_CASE("NVML shows the job's processes and nobody else's, and what they hold together") {
    const Folder books;
    const Words job{"CUSLICE_LIMIT=1200MiB", "CUSLICE_JOB=shared"};
    auto a = in_job(books, job), b = in_job(books, job), watcher = in_job(books, job);
    Guest stranger(Guest::route("linked"), raw("1xlaptop-2g", books.path()));
    REQUIRE(stranger.code("init") == kSuccess);
    for (Guest* guest : {a.get(), b.get(), &stranger})
        REQUIRE(guest->code("retain 0") == kSuccess);
    REQUIRE(a->code("alloc x " + bytes(100 * kMiB)) == kSuccess);
    const auto pids = [](std::vector<int> sorted) {
        std::sort(sorted.begin(), sorted.end());
        std::string text = "0";
        for (const int pid : sorted)
            text += " " + std::to_string(pid);
        return text;
    };
    const std::string together = std::to_string(held(books, *a) + held(books, *b));
    for (Guest* guest : {a.get(), b.get(), watcher.get()}) {
        REQUIRE(guest->code("nvml") == kSuccess);
        CHECK(guest->ask("nvmlprocesses 0") == pids({a->pid(), b->pid()}));
        CHECK(guest->ask("nvmlprocesses 0 1") == "7 2");  // INSUFFICIENT_SIZE, and how much it takes
        const Words memory = split_words(guest->ask("nvmlmemory2 0"));
        CHECK(memory.at(1) == std::to_string(1200 * kMiB));
        CHECK(memory.at(3) == together);
    }
    REQUIRE(stranger.code("nvml") == kSuccess);
    CHECK(stranger.ask("nvmlprocesses 0") == pids({a->pid(), b->pid(), stranger.pid()}));
    auto alone = in_job(books, {"CUSLICE_LIMIT=200MiB"});
    REQUIRE(alone->code("nvml") == kSuccess);
    CHECK(alone->ask("nvmlprocesses 0") == "0");
}

TEST_CASE("a ledger that is damaged is made anew, and one line says so") {
    const Folder books;
    REQUIRE(run(launch({"--limit", "700MiB"}, {"/bin/true"}), outside(books)).exit_code == 0);
    for (const auto& file : std::filesystem::directory_iterator(books.path() + "/ledger"))
        std::ofstream(file.path()) << "garbage";
    auto a = in_job(books, {"CUSLICE_LIMIT=700MiB", "CUSLICE_JOB=shared"});
    REQUIRE(a->code("retain 0") == kSuccess);
    REQUIRE(a->code("release 0") == kSuccess);
    REQUIRE(a->code("retain 0") == kSuccess);
    const Words said = a->complaints();
    REQUIRE(said.size() == 1);
    CHECK(said[0].find("was damaged or of another version and has been recreated") != std::string::npos);
    CHECK(holders(books).size() == 1);
}

TEST_CASE("a forked child that starts CUDA itself has a place of its own") {
    const Folder books;
    const Words job{"CUSLICE_LIMIT=1500MiB", "CUSLICE_JOB=shared"};
    auto a = in_job(books, job);
    REQUIRE(a->code("retain 0") == kSuccess);
    const uint64_t before = held(books, *a);
    CHECK(a->ask("forks 20 2") == "0 0");
    CHECK(held(books, *a) == before);
    const auto now = holders(books);
    REQUIRE(now.size() == 1);
    CHECK(now[0]["used"] == before);
}

}  // namespace cuslice::tests
