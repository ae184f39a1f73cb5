// SPDX-License-Identifier: Apache-2.0
// Contexts that end while other threads allocate and free: nobody is left in one that is gone, and nothing is handed
// out twice.
#include "tests/catch.h"
#include "tests/preload/guest.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

/// The guest's threads have contexts begin and end; afterwards all memory can be had, and nothing is left.
void check_endings(Guest& guest, const Folder& books, const std::string& command, bool grows) {
    retain_device(guest);
    const Words wrong = split_words(guest.ask(command));
    REQUIRE(wrong.size() == 3);
    CHECK(wrong[1] == "0");
    // With prealloc a new context may need what was just given back for another one's memory.
    if (grows)
        CHECK(wrong[2] == "0");
    CHECK(guest.code("alloc a " + bytes(kGiB)) == kSuccess);
    CHECK(guest.code("free a") == kSuccess);
    CHECK(guest.code("release 0") == kSuccess);
    CHECK(all_books_of(books.path(), guest.pid()).used == 0);
    CHECK(guest.finish() == 0);
}

TEST_CASE("contexts that other threads end leave a thread in its own, and its memory alone") {
    const std::string mode = GENERATE("growth", "prealloc"), free = GENERATE("strict", "deferred");
    const std::string largest = GENERATE("30000", "300000");
    CAPTURE(mode, free, largest);
    const Folder books;
    Guest guest(
        Guest::route("linked"),
        sliced("2xt4", books.path(), {"CUSLICE_LIMIT=2GiB", "CUSLICE_ALLOCATOR=" + mode, "CUSLICE_FREE=" + free}));
    check_endings(guest, books, "endings 300 " + largest, mode == "growth");
}

// A thread that needs memory makes cuslice itself ask the driver whether a stream is still captured.
TEST_CASE("a stream ends while other threads ask whether it is captured") {
    const std::string free = GENERATE("strict", "deferred");
    CAPTURE(free);
    const Folder books;
    Guest guest(
        Guest::route("linked"),
        sliced("2xt4", books.path(), {"CUSLICE_LIMIT=2GiB", "CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free}));
    check_endings(guest, books, "streams 2000", true);
}

// Waiting for their work, making events in them, giving their idle memory back: cuslice does it on its own account.
TEST_CASE("a context ends while other threads' frees and needs lead into it") {
    const std::string mode = GENERATE("growth", "prealloc"), free = GENERATE("strict", "deferred");
    const std::string how = GENERATE("destroy", "release", "reset");
    CAPTURE(mode, free, how);
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("2xt4", books.path(),
                                               {"CUSLICE_LIMIT=2GiB", "CUSLICE_ALLOCATOR=" + mode,
                                                "CUSLICE_FREE=" + free, "CUSLICE_IDLE_RELEASE=10ms"}));
    check_endings(guest, books, "visits 100 " + how, mode == "growth");
}

TEST_CASE("a child that is forked while a context ends waits for nobody") {
    const std::string mode = GENERATE("direct", "growth");
    CAPTURE(mode);
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("2xt4", books.path(),
                                               {"CUSLICE_LIMIT=2GiB", "CUSLICE_ALLOCATOR=" + mode,
                                                "CUSLICE_FAKE_INJECT=delay:cuDevicePrimaryCtxRelease_v2=5ms"}));
    retain_device(guest);
    CHECK(guest.ask("forkends 20") == "0 0");
    CHECK(guest.code("alloc a " + bytes(kGiB)) == kSuccess);
    CHECK(guest.code("free a") == kSuccess);
}

}  // namespace
}  // namespace cuslice::tests
