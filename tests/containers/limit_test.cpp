// SPDX-License-Identifier: Apache-2.0
// One container: whatever it lacks, the limit holds by the books of the GPU, and can be had whole.
#include <cstdio>
#include <filesystem>

#include "tests/containers/tenant.h"

namespace cuslice::tests {
namespace {

// Each thing that may be missing by itself, and all of it at once.
const Like kKinds[] = {{},
                       {.users = true},
                       {.read_only = true},
                       {.shm = Shm::small},
                       {.shm = Shm::none},
                       {.proc = false},
                       {.users = true, .read_only = true, .shm = Shm::none, .proc = false},
                       {.read_only = true, .user = 60001}};

}  // namespace

TEST_CASE("a container is what the other tests take it for") {
    const Folder folder;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    if (!can_make(like))
        return;
    CAPTURE(text_of(like));
    const auto says = [&](const std::string& script) {
        const Container container(with_books(like, folder));
        const Outcome outcome = run(joined(container.before(), container.command({"/bin/sh", "-c", script})), plain());
        CHECK(outcome.err.empty());
        return outcome.out;
    };
    // One of the first in its pid namespace, and of none of the machine's.
    CHECK(std::stoi(says("echo $$")) < 10);
    CHECK(says("[ -e /proc/self ] && echo yes || echo no") == (like.proc ? "yes\n" : "no\n"));
    CHECK(says("[ -d /dev/shm ] && echo yes || echo no") == (like.shm == Shm::none ? "no\n" : "yes\n"));
    if (like.shm == Shm::small)
        CHECK(says("stat -fc '%b %S' /dev/shm") == "16 4096\n");
    CHECK(says("(: >/of-a-test) 2>&- && rm /of-a-test && echo yes || echo no") ==
          (like.read_only || like.user != 0 || ::geteuid() != 0 ? "no\n" : "yes\n"));
    CHECK(says(": >" + folder.path() + "/here && echo yes") == "yes\n");
    if (like.users)
        CHECK(says("id -u") == "0\n");
    if (like.user != 0)
        CHECK(says("id -u") == std::to_string(like.user) + "\n");
    if (like.proc && like.users)
        CHECK(split_words(says("cat /proc/self/uid_map")).at(2) == "1");
}

TEST_CASE("a limit holds in a container, and all of it can be had") {
    const Folder books;
    const Like like = GENERATE(from_range(std::begin(kKinds), std::end(kKinds)));
    const How how = GENERATE(How::alone, How::inside, How::outside);
    if (!can_hold(like) || !can_pass_on(like, how))
        return;
    const std::string allocator = GENERATE("direct", "growth");
    CAPTURE(text_of(like), text_of(how), allocator);
    if (how == How::inside && !like.proc)
        return;  // the next test's
    Tenant tenant(like, how, books, {"CUSLICE_ALLOCATOR=" + allocator});
    REQUIRE(tenant.start() == kSuccess);
    const uint64_t free = tenant.guest.number("info");
    CHECK(free + 16 * kMiB + held_by_all(books.path()) == kGiB);
    CHECK(tenant.guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(peak_of_all(books.path()) <= kGiB);
    CHECK(peak_of_all(books.path()) > kGiB - 128 * kMiB);
    CHECK(tenant.guest.code("freeall") == kSuccess);
    CHECK(tenant.guest.number("info") == free);
    CHECK(tenant.guest.finish() == 0);
    CHECK(held_by_all(books.path()) == 0);
}

TEST_CASE("a launcher without /proc starts nothing, and says what is missing") {
    const Folder books;
    const Like like{.proc = false};
    if (!can_hold(like))
        return;
    const Container container(with_books(like, books));
    const Outcome outcome = run(command(container, How::inside, {"/bin/echo", "started"}), settings(books));
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.out.empty());
    CHECK(outcome.err ==
          "cuslice: /proc/self/exe: cannot be read, so the library cannot be found: is /proc mounted?\n");
}

TEST_CASE("in a container NVML lists the program, whose pid is one that others have outside") {
    const Folder books;
    const Like like = GENERATE(Like{}, Like{.users = true});
    if (!can_hold(like))
        return;
    CAPTURE(text_of(like));
    Tenant a(like, How::alone, books), b(like, How::alone, books);
    REQUIRE(a.start() == kSuccess);
    REQUIRE(b.start() == kSuccess);
    REQUIRE(a.guest.code("alloc x " + bytes(200 * kMiB)) == kSuccess);
    REQUIRE(a.guest.pid() == b.guest.pid());
    // Each sees itself and no other, and counts its own memory alone.
    for (Guest* guest : {&a.guest, &b.guest}) {
        REQUIRE(guest->code("nvml") == kSuccess);
        CHECK(guest->ask("nvmlprocesses 0") == "0 " + std::to_string(guest->pid()));
    }
    CHECK(b.guest.number("info") - a.guest.number("info") == 200 * kMiB);
    CHECK(b.guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(a.guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(held_by_all(books.path()) > 1700 * kMiB);
}

TEST_CASE("a home of somebody else's in a container is no reason not to start") {
    const Folder books, home;
    const Like like{.user = 60001};
    const How how = GENERATE(How::alone, How::inside, How::outside);
    if (!can_hold(like) || !can_pass_on(like, how))
        return;
    CAPTURE(text_of(how));
    home.write(".config/cuslice/cuslice.toml", "[memory]\nlimit = \"1MiB\"\n");
    Like kind = like;
    kind.writable.push_back(home.path());  // root's, and closed to others
    Tenant tenant(kind, how, books, {"HOME=" + home.path()});
    REQUIRE(tenant.start() == kSuccess);
    CHECK(tenant.guest.number("total 0") == kGiB);
}

TEST_CASE("a user's ledger has one name, in a container and outside") {
    const Folder books;
    const Like like = GENERATE(Like{.user = 60001}, Like{.users = true, .user = 60001});
    const How how = GENERATE(How::inside, How::outside);
    if (std::string(kTool) == "runc" && like.users)
        return;  // its own user is the tests'
    if (!can_hold(like) || !can_pass_on(like, how))
        return;
    // Nobody there can know the number: bwrap makes two user namespaces, of which it shows the inner one's map.
    if (std::string(kTool) == "bwrap" && like.users && how == How::inside)
        return;
    CAPTURE(text_of(like), text_of(how));
    Tenant tenant(like, how, books);
    REQUIRE(tenant.start() == kSuccess);
    CHECK(tenant.guest.complaints().empty());
    Words ledgers;
    for (const auto& entry : std::filesystem::directory_iterator(books.path() + "/ledger"))
        if (entry.path().extension() == ".ledger")
            ledgers.push_back(entry.path().filename().string());
    REQUIRE(ledgers.size() == 1);
    CHECK(ledgers[0].starts_with("60001-"));
}

}  // namespace cuslice::tests
