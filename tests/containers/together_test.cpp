// SPDX-License-Identifier: Apache-2.0
// Several containers that share the ledgers' folder: one limit for all of them, whatever each lacks; and none is held
// up by what happens to another.
#include <signal.h>

#include <filesystem>

#include "tests/containers/tenant.h"

namespace cuslice::tests {
namespace {

const Like kKinds[] = {{}, {.users = true}, {.read_only = true}, {.proc = false}, {.users = true, .proc = false}};

const Words kGroup{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"};

// Tries until it is granted: a tool that is killed ends before what it has started.
bool granted_soon(Guest& guest, const std::string& line) {
    guest.let_change("free", "a neighbour gives back at the same time");
    return soon([&] { return guest.code(line) == kSuccess; });
}

}  // namespace

TEST_CASE("two containers share one limit, whose processes have the same pids") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    const std::string what = GENERATE("group", "job");
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like), what);
    // The job is one that a launcher outside has begun, and whose name both are given.
    std::unique_ptr<Guest> launched;
    Words share = kGroup;
    if (what == "job") {
        launched = std::make_unique<Guest>(
            Words{kLaunch, "run", "--", "/bin/sh", "-c", "read line; echo $CUSLICE_JOB; read line"}, settings(books));
        share = {"CUSLICE_JOB=" + launched->ask("go")};
        REQUIRE(share[0].find("@GPU-") != std::string::npos);
    }
    Tenant a(like, How::alone, books, share), b(like, How::alone, books, share);
    REQUIRE(a.start() == kSuccess);
    REQUIRE(b.start() == kSuccess);
    REQUIRE(a.guest.pid() == b.guest.pid());
    CHECK(a.guest.complaints().empty());
    CHECK(b.guest.complaints().empty());
    CHECK(a.guest.number("info") == b.guest.number("info"));
    REQUIRE(a.guest.code("alloc x " + bytes(200 * kMiB)) == kSuccess);
    CHECK(a.guest.number("info") == b.guest.number("info"));
    CHECK(b.guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(a.guest.code("alloc y " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(held_by_all(books.path()) <= kGiB);
    CHECK(held_by_all(books.path()) > kGiB - 64 * kMiB);
    // Memory that one gives back is there for the other.
    CHECK(a.guest.code("free x") == kSuccess);
    CHECK(b.guest.code("alloc z " + bytes(190 * kMiB)) == kSuccess);
    CHECK(held_by_all(books.path()) <= kGiB);
    CHECK(b.guest.finish() == 0);
    CHECK(granted_soon(a.guest, "alloc y " + bytes(600 * kMiB)));
}

TEST_CASE("a container's slice is kept from another one's, and free when its processes are killed") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    // Without /proc there is no launcher in it.
    const How how = like.proc ? GENERATE(How::inside, How::outside) : How::outside;
    if (!can_hold(like) || !can_pass_on(like, how))
        return;
    CAPTURE(text_of(like), text_of(how));
    auto a = std::make_unique<Tenant>(like, how, books);
    REQUIRE(a->start() == 0);
    REQUIRE(a->guest.code("alloc x " + bytes(500 * kMiB)) == kSuccess);
    const auto another = [&] {
        const Container container(with_books(like, books));
        return run(command(container, how, {"/bin/echo", "started"}), settings(books));
    };
    const Outcome refused = another();
    CHECK(refused.exit_code == 75);
    CHECK(refused.out.empty());
    CHECK(refused.err.find("cuslice: GPU 0: 1024.0 MiB requested, 978.0 MiB left. Held: pid ") == 0);
    // Everything at once, the container's first process among them.
    a->signal_all(SIGKILL);
    int code = 75;
    CHECK(soon([&] { return (code = another().exit_code) != 75; }));
    CHECK(code == 0);
    CHECK(soon([&] { return held_by_all(books.path()) == 0; }));
}

TEST_CASE("what a killed container held of a shared limit can be had by the others") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    Tenant a(like, How::alone, books, kGroup), b(like, How::alone, books, kGroup);
    REQUIRE(a.start() == kSuccess);
    REQUIRE(b.start() == kSuccess);
    REQUIRE(a.guest.code("alloc x " + bytes(300 * kMiB)) == kSuccess);
    REQUIRE(b.guest.code("alloc x " + bytes(300 * kMiB)) == kOutOfMemory);
    a.signal_all(SIGKILL);
    CHECK(granted_soon(b.guest, "alloc x " + bytes(300 * kMiB)));
    CHECK(granted_soon(b.guest, "alloc y " + bytes(300 * kMiB)));
    CHECK(soon([&] { return held_by_all(books.path()) == 900 * kMiB; }));
}

TEST_CASE("nobody waits for a stopped container, which keeps what it holds") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    Tenant a(like, How::alone, books, kGroup), b(like, How::alone, books, kGroup);
    REQUIRE(a.start() == kSuccess);
    REQUIRE(a.guest.code("alloc x " + bytes(100 * kMiB)) == kSuccess);
    a.signal_all(SIGSTOP);
    REQUIRE(b.start() == kSuccess);
    CHECK(b.guest.code("alloc x " + bytes(200 * kMiB)) == kSuccess);
    for (int i = 0; i < 20; ++i)
        CHECK(b.guest.code("alloc y " + bytes(300 * kMiB)) == kOutOfMemory);
    CHECK(b.guest.code("free x") == kSuccess);
    // Refusals name memory and nobody's lock.
    for (const std::string& line : b.guest.complaints())
        CHECK(line.find("locked by") == line.npos);
    a.signal_all(SIGCONT);
    CHECK(a.guest.code("alloc y " + bytes(200 * kMiB)) == kSuccess);
}

TEST_CASE("ps lists on the host what containers hold, and in a container what others do") {
    const Folder books;
    const Like like = GENERATE(Like{}, Like{.users = true}, Like{.read_only = true}, Like{.user = 60001});
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    Tenant a(like, How::inside, books, kGroup);
    REQUIRE(a.start() == kSuccess);
    REQUIRE(a.guest.code("alloc x " + bytes(100 * kMiB)) == kSuccess);
    const Container neighbour(with_books(like, books));
    const Words ps{kLaunch, "ps", "--json"};
    for (const Words& words : {ps, joined(neighbour.before(), neighbour.command(ps))}) {
        const Outcome listed = run(words, settings(books));
        REQUIRE(listed.exit_code == 0);
        size_t groups = 0;
        const Json answer = Json::parse(listed.out);
        for (const auto& row : answer["processes"]) {
            CHECK(row["used"] == held_by_all(books.path()));
            CHECK(row["pid"] == a.guest.pid());
            groups += row["kind"] == "group" && row["name"] == "lab";
        }
        CHECK(groups == 1);
    }
}

}  // namespace cuslice::tests
