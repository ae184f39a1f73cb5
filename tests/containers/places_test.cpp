// SPDX-License-Identifier: Apache-2.0
// A container that has no room for the ledger, or no folder: nothing that is to share a limit starts without sharing
// it.
#include <filesystem>

#include "tests/containers/tenant.h"

namespace cuslice::tests {
namespace {

const Like kKinds[] = {
    {.shm = Shm::small}, {.users = true, .shm = Shm::small}, {.shm = Shm::none}, {.read_only = true, .shm = Shm::none}};

const std::string kUsual = "/dev/shm/cuslice";

// The ledger's usual folder, which the fake GPU's tests have elsewhere.
Words usual(const Words& more = {}) { return joined({"CUSLICE_DIR=" + kUsual}, more); }

// The cause that the line names: no room, or no folder.
std::string cause(const Like& like) {
    return like.shm == Shm::small ? "no room for " + kUsual + "/" : "can't make the folder " + kUsual + ": ";
}

}  // namespace

TEST_CASE("where a container has no room for the ledger, a job isn't started, and a line says what to do") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    const auto started = [&](const Words& options, const Words& more) {
        const Container container(with_books(like, books));
        const Words words = joined(joined({kLaunch, "run"}, options), {"--", "/bin/echo", "started"});
        return run(container.command(words), settings(books, more));
    };
    const Outcome refused = started({}, usual());
    CHECK(refused.exit_code == 78);
    CHECK(refused.out.empty());
    CHECK(refused.err.find("cuslice: the limit can't be shared between processes: " + cause(like)) == 0);
    CHECK(refused.err.find("--dir") != std::string::npos);
    CHECK(refused.err.find("--per-process") != std::string::npos);
    CHECK(split_lines(refused.err).size() == 1);
    // The line's advice works.
    CHECK(started({"--per-process"}, usual()).out == "started\n");
    CHECK(started({"--dir", books.path() + "/here"}, usual()).out == "started\n");
    // Nothing to share, nothing to refuse.
    const Container container(with_books(like, books));
    CHECK(run(container.command({kLaunch, "run", "--", "/bin/echo", "started"}),
              plain({"CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(), "CUSLICE_DIR=" + kUsual}))
              .out == "started\n");
}

TEST_CASE("a job's process in a container that can't reach the job's ledger is granted nothing") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    const Folder ledgers;
    Guest launched(
        {kLaunch, "run", "--dir", ledgers.path(), "--", "/bin/sh", "-c", "read line; echo $CUSLICE_JOB; read line"},
        settings(books));
    const std::string folder = GENERATE(true, false) ? kUsual : "/nowhere/cuslice";
    const Words share{"CUSLICE_DIR=" + folder, "CUSLICE_JOB=" + launched.ask("go")};
    REQUIRE(share[1].find("@GPU-") != std::string::npos);
    Tenant tenant(like, How::alone, books, share);
    REQUIRE(tenant.guest.code("init") == kSuccess);
    CHECK(tenant.guest.code("retain 0") == kOutOfMemory);
    const Words complaints = complaints_of(tenant.guest, 1);
    REQUIRE(complaints.size() == 1);
    CHECK(complaints[0].find("the limit can't be shared with other processes, so every allocation fails: ") !=
          std::string::npos);
    CHECK(held_by_all(books.path()) == 0);
}

TEST_CASE("a job's process whose container has a folder of its own for ledgers is granted nothing") {
    const Folder books;
    const Like like = GENERATE(Like{}, Like{.users = true});
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    Guest launched({kLaunch, "run", "--", "/bin/sh", "-c", "read line; echo $CUSLICE_JOB; read line"}, settings(books));
    const Words share{"CUSLICE_DIR=" + books.path() + "/other", "CUSLICE_JOB=" + launched.ask("go")};
    Tenant tenant(like, How::alone, books, share);
    REQUIRE(tenant.guest.code("init") == kSuccess);
    CHECK(tenant.guest.code("retain 0") == kOutOfMemory);
    const Words complaints = complaints_of(tenant.guest, 1);
    REQUIRE(complaints.size() == 1);
    CHECK(complaints[0].find("or its folder is not mounted in this container") != std::string::npos);
    CHECK(held_by_all(books.path()) == 0);
}

TEST_CASE("a job's process that is another user in its container is granted nothing") {
    const Folder books, own, ledgers;
    // Both may write there. The fake GPU's books are one user's, so each has some of its own.
    std::filesystem::permissions(ledgers.path(), std::filesystem::perms(01777));
    Like like = std::string(kTool) == "runc" ? Like{.user = 60001} : Like{};
    if (!can_hold({.user = 60001}) || !can_hold(like))
        return;
    like.writable = {books.path(), ledgers.path()};
    REQUIRE(::chown(own.path().c_str(), 60001, 60001) == 0);
    like.writable.push_back(own.path());
    const Container container(like);
    const Words change = like.user == 0 ? as_user(60001) : Words{};
    const Words program =
        joined(joined(change, {"/usr/bin/env", "LD_PRELOAD=" + preload_list(), "CUSLICE_FAKE_DIR=" + own.path()}),
               Guest::route("linked"));
    Guest launched({kLaunch, "run", "--", "/bin/sh", "-c", "read line; echo $CUSLICE_JOB; read line"},
                   settings(books, {"CUSLICE_DIR=" + ledgers.path()}));
    Guest guest(container.command(program),
                settings(books, {"CUSLICE_DIR=" + ledgers.path(), "CUSLICE_JOB=" + launched.ask("go")}));
    REQUIRE(guest.code("init") == kSuccess);
    CHECK(guest.code("retain 0") == kOutOfMemory);
    const Words complaints = complaints_of(guest, 1);
    REQUIRE(complaints.size() == 1);
    CHECK(complaints[0].find("or the launcher is another user") != std::string::npos);
}

TEST_CASE("a group that has no room for its ledger grants nothing, and a line says what to do") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    Tenant tenant(like, How::alone, books, usual({"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"}));
    REQUIRE(tenant.guest.code("init") == kSuccess);
    CHECK(tenant.guest.code("retain 0") == kOutOfMemory);
    const Words complaints = complaints_of(tenant.guest, 1);
    REQUIRE(complaints.size() == 1);
    CHECK(complaints[0].find(cause(like)) != std::string::npos);
    CHECK(complaints[0].find("CUSLICE_DIR") != std::string::npos);
    CHECK(held_by_all(books.path()) == 0);
    // A limit of the process's own needs no ledger.
    Tenant alone(like, How::alone, books, usual());
    CHECK(alone.start() == kSuccess);
    CHECK(alone.guest.complaints().empty());
}

}  // namespace cuslice::tests
