// SPDX-License-Identifier: Apache-2.0
// A limit that a program sets for itself, within the one that it was given.
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

const std::string kSmaller = bytes(700 * kMiB);

/// Bytes of a guest by the fake driver, its context included.
uint64_t held(Scene& scene) { return scene.held().used; }

}  // namespace

TEST_CASE("a program holds no more than it has set for itself, and what it was given once it gives that up") {
    const std::string allocator = GENERATE("direct", "growth");
    Scene scene("1xlaptop-2g", {"CUSLICE_ALLOCATOR=" + allocator});
    enter_device(scene.guest);
    CHECK(scene.guest.ask("setslice 0 " + kSmaller) == "0");
    CHECK(split_words(scene.guest.ask("getslice 0")).at(1) == kSmaller);
    CHECK(split_words(scene.guest.ask("info")).at(2) == kSmaller);
    CHECK(scene.guest.code("fill " + bytes(20 * kMiB)) == kOutOfMemory);
    CHECK(held(scene) <= 700 * kMiB);
    CHECK(held(scene) > 600 * kMiB);
    CHECK(scene.guest.ask("setslice 0 all") == "0");
    CHECK(scene.guest.code("fill " + bytes(20 * kMiB)) == kOutOfMemory);
    CHECK(held(scene) > 900 * kMiB);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.guest.ask("setslice 0 " + bytes(4 * kGiB)) == "0");  // more than it was given is no more
    CHECK(split_words(scene.guest.ask("getslice 0")).at(1) == bytes(kGiB));
}

TEST_CASE("memory above what a program sets for itself stays, and nothing is added to it") {
    Scene scene("1xlaptop-2g", {});
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(500 * kMiB)) == kSuccess);
    const uint64_t before = held(scene);
    REQUIRE(before > 600 * kMiB);
    CHECK(scene.guest.ask("setslice 0 " + bytes(450 * kMiB)) == "0");
    CHECK(held(scene) == before);
    CHECK(scene.guest.number("getslice 0", 2) == before);
    CHECK(scene.guest.code("alloc b 512") == kOutOfMemory);
    CHECK(scene.guest.number("getslice 0", 3) == 1);
    CHECK(scene.guest.number("getslice 0", 4) == before - 500 * kMiB);
    CHECK(scene.guest.ask("info") == "0 0 " + bytes(450 * kMiB));
    REQUIRE(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.code("alloc b " + bytes(50 * kMiB)) == kSuccess);
    CHECK(held(scene) <= 450 * kMiB);
}

TEST_CASE("cached memory goes back when a program lowers its limit") {
    const std::string free = GENERATE("strict", "deferred");
    Scene scene("1xlaptop-2g", {"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free});
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(500 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("free a") == kSuccess);
    REQUIRE(held(scene) > 600 * kMiB);
    CHECK(scene.guest.ask("setslice 0 " + bytes(450 * kMiB)) == "0");
    CHECK(held(scene) <= 450 * kMiB);
    CHECK(scene.guest.code("alloc b " + bytes(50 * kMiB)) == kSuccess);
}

TEST_CASE("a limit that is set before CUDA is initialised holds, also in a forked child, and for the context") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), Scene::with({}, "1024MiB")));
    CHECK(guest.ask("setslice 0 " + kSmaller) == "0");
    CHECK(split_words(guest.ask("getslice 0")).at(0) == "3");
    if (GENERATE(false, true))
        REQUIRE(guest.code("fork") == kSuccess);
    REQUIRE(guest.code("init") == kSuccess);
    enter_device(guest);
    CHECK(split_words(guest.ask("info")).at(2) == kSmaller);
    CHECK(guest.code("fill " + bytes(20 * kMiB)) == kOutOfMemory);
    CHECK(split_words(guest.ask("getslice 0")).at(1) == kSmaller);
    CHECK(guest.number("getslice 0") == 700 * kMiB);
}

TEST_CASE("a refusal at a limit that the program has set says so") {
    Scene scene("1xlaptop-2g", {});
    enter_device(scene.guest);
    CHECK(scene.guest.ask("setslice 0 " + kSmaller) == "0");
    CHECK(scene.guest.code("alloc a " + bytes(900 * kMiB)) == kOutOfMemory);
    scene.guest.finish();
    const std::string said = scene.guest.err();
    CHECK(said.find("of the 700.0 MiB limit") != std::string::npos);
    CHECK(said.find("The limit is from the program itself (cuslice_set_slice)") != std::string::npos);
}

TEST_CASE("a limit is set on each partition by itself, and on one GPU of several") {
    const Folder books;
    const std::string machine = GENERATE("2xt4", "1xt4");
    Words settings{machine == "2xt4" ? "CUSLICE_LIMIT=2GiB" : "CUSLICE_SPLIT=0=2GiB+2GiB", "CUSLICE_HEADROOM=16MiB"};
    Guest guest(Guest::route("linked"), sliced(machine, books.path(), settings));
    REQUIRE(guest.code("init") == kSuccess);
    CHECK(guest.ask("setslice 1 " + bytes(kGiB)) == "0");
    CHECK(split_words(guest.ask("getslice 0")).at(1) == bytes(2 * kGiB));
    CHECK(split_words(guest.ask("getslice 1")).at(1) == bytes(kGiB));
    REQUIRE(guest.code("retain 1") == kSuccess);
    REQUIRE(guest.code("current 1") == kSuccess);
    CHECK(guest.code("alloc a " + bytes(1100 * kMiB)) == kOutOfMemory);
    enter_device(guest);
    CHECK(guest.code("alloc a " + bytes(1100 * kMiB)) == kSuccess);
}

TEST_CASE("in a limit that a program sets for itself something is kept for the driver, as in any") {
    const std::string allocator = GENERATE("direct", "growth");
    const Folder books;
    Guest guest(Guest::route("linked"),
                sliced("1xlaptop-2g", books.path(), {"CUSLICE_LOG=warn", "CUSLICE_ALLOCATOR=" + allocator}));
    CHECK(guest.ask("setslice 0 " + kSmaller) == "0");
    REQUIRE(guest.code("init") == kSuccess);
    enter_device(guest);
    CHECK(guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    const uint64_t held = books_of(books.path(), guest.pid()).used;
    CHECK(held < 690 * kMiB);
    CHECK(held > 600 * kMiB);
    // All of the GPU is the program's once it gives that up, and nothing is kept.
    CHECK(guest.ask("setslice 0 all") == "0");
    CHECK(guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(guest.number("info") < 2 * kMiB);
}

TEST_CASE("a program that was given no limit can set one before CUDA is initialised") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), {"CUSLICE_LOG=warn"}));
    CHECK(guest.ask("setslice 0 " + kSmaller) == "0");
    REQUIRE(guest.code("init") == kSuccess);
    enter_device(guest);
    CHECK(guest.code("fill " + bytes(20 * kMiB)) == kOutOfMemory);
    CHECK(books_of(books.path(), guest.pid()).used <= 700 * kMiB);
    CHECK(guest.ask("setslice 0 all") == "0");
    CHECK(guest.code("alloc a " + bytes(400 * kMiB)) == kSuccess);
}

TEST_CASE("a program can't limit itself where nothing is counted, or in preallocated memory") {
    const Folder books;
    Guest plain(Guest::route("linked"), sliced("1xt4", books.path(), {"CUSLICE_LOG=warn"}));
    REQUIRE(plain.code("init") == kSuccess);
    CHECK(plain.ask("setslice 0 " + kSmaller) == "801");
    CHECK(plain.ask("setslice 1 " + kSmaller) == "101");
    CHECK(plain.ask("setslice -1 " + kSmaller) == "1");
    CHECK(plain.ask("setslice 64 " + kSmaller) == "1");
    Scene scene("1xlaptop-2g", {"CUSLICE_ALLOCATOR=prealloc"});
    CHECK(scene.guest.ask("setslice 0 " + kSmaller) == "801");
}

}  // namespace cuslice::tests
