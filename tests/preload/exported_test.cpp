// SPDX-License-Identifier: Apache-2.0
// Memory of cuMemCreate that was exported and released: NVML shows it with no process, and it stays charged to the one
// that made it for as long as a descriptor or another process keeps it on the GPU.
#include "tests/preload/neighbour.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kPiece = 300 * kMiB;

/// Makes a piece, exports it and releases it.
void give_away(Guest& guest, const std::string& name) {
    REQUIRE(guest.code("piece " + name + " " + bytes(kPiece) + " export") == kSuccess);
    REQUIRE(guest.code("export " + name) == kSuccess);
    REQUIRE(guest.code("unpiece " + name) == kSuccess);
}

/// Bytes of a process's on the GPU, whoever is listed with them.
uint64_t all_of(const Held& held) { return held.used + held.unlisted; }

struct Owner : Scene {
    explicit Owner(const Words& settings = {}, const std::string& limit = "1024MiB") : Scene("1xt4", settings, limit) {
        REQUIRE(guest.code("retain 0") == kSuccess);
    }
};

TEST_CASE("exporting and releasing is no way round a limit") {
    const std::string limit = GENERATE("1024MiB", "1024MiB+context");
    CAPTURE(limit);
    Owner owner({}, limit);
    const uint64_t context = owner.held().used, free = owner.free();
    const uint64_t most = kGiB + (limit == "1024MiB" ? 0 : context);
    constexpr uint64_t kPieces = 3;
    for (uint64_t i = 0; i < kPieces; i++) {
        give_away(owner.guest, "a" + bytes(i));
        CHECK(owner.held().used == context);
        CHECK(all_of(owner.held()) == context + (i + 1) * kPiece);
        CHECK(owner.free() == free - (i + 1) * kPiece);
    }
    CHECK(owner.guest.code("piece b " + bytes(kPiece)) == kOutOfMemory);
    CHECK(owner.guest.code("alloc b " + bytes(kPiece)) == kOutOfMemory);
    CHECK(owner.guest.code("alloc b " + bytes(kPiece) + " async") == kOutOfMemory);
    CHECK(owner.guest.code("fill " + bytes(4 * kMiB)) == kOutOfMemory);
    CHECK(all_of(owner.held()) <= most);
    CHECK(all_of(owner.held()) + 20 * kMiB >= most);
    CHECK(owner.guest.code("freeall") == kSuccess);
    // Each descriptor that is closed makes its memory available again, and no more than that.
    for (uint64_t left = kPieces; left > 0; left--) {
        CHECK(owner.guest.code("unexport a" + bytes(left - 1)) == kSuccess);
        CHECK(owner.guest.code("alloc more " + bytes(free - (left - 1) * kPiece + 2 * kMiB)) == kOutOfMemory);
        CHECK(owner.free() == free - (left - 1) * kPiece);
    }
    CHECK(owner.guest.code("alloc all " + bytes(free / (2 * kMiB) * 2 * kMiB)) == kSuccess);
    CHECK(all_of(owner.held()) <= most);
}

TEST_CASE("exported memory that nobody keeps is back at its release") {
    Owner owner;
    const uint64_t free = owner.free();
    REQUIRE(owner.guest.code("piece a " + bytes(kPiece) + " export") == kSuccess);
    SECTION("with its handle") {
        REQUIRE(owner.guest.code("export a close") == kSuccess);
        REQUIRE(owner.guest.code("unpiece a") == kSuccess);
    }
    SECTION("with its mapping, and however often it was exported") {
        REQUIRE(owner.guest.code("map a " + bytes(kPiece)) == kSuccess);
        REQUIRE(owner.guest.code("export a close") == kSuccess);
        REQUIRE(owner.guest.code("export a close") == kSuccess);
        REQUIRE(owner.guest.code("unpiece a") == kSuccess);
        CHECK(owner.free() == free - kPiece);
        REQUIRE(owner.guest.code("unmap a") == kSuccess);
    }
    CHECK(owner.free() == free);
    CHECK(owner.guest.code("alloc all " + bytes(free)) == kSuccess);
}

TEST_CASE("what others do on the GPU meanwhile is no matter") {
    Owner owner;
    Neighbour other(owner);
    const uint64_t free = owner.free();
    REQUIRE(other.guest.code("alloc a " + bytes(kPiece)) == kSuccess);
    give_away(owner.guest, "a");
    REQUIRE(other.guest.code("free a") == kSuccess);
    REQUIRE(other.guest.code("alloc b " + bytes(kPiece / 2)) == kSuccess);
    CHECK(owner.free() == free - kPiece);
    CHECK(other.guest.finish() == 0);
    CHECK(owner.free() == free - kPiece);
    CHECK(owner.guest.code("unexport a") == kSuccess);
    CHECK(owner.free() == free);
}

TEST_CASE("memory that another process imported is charged to its maker until both have released it") {
    Owner owner;
    Neighbour other(owner, "256MiB");
    const bool external = GENERATE(false, true);
    const uint64_t free = owner.free(), other_free = other.free();
    REQUIRE(owner.guest.code("piece a " + bytes(kPiece) + " export") == kSuccess);
    const std::string given = second_word(owner.guest.ask("export a"));
    REQUIRE(other.guest.code(external ? "external b " + given + " " + bytes(kPiece) : "import b " + given) == kSuccess);
    REQUIRE(owner.guest.code("unexport a") == kSuccess);
    REQUIRE(owner.guest.code("unpiece a") == kSuccess);
    CHECK(owner.held().unlisted == kPiece);
    CHECK(owner.free() == free - kPiece);
    CHECK(owner.guest.code("alloc all " + bytes(free - kPiece + 2 * kMiB)) == kOutOfMemory);
    CHECK(other.held().used == 104 * kMiB);
    CHECK(other.free() == other_free);
    SECTION("the maker imports it again") {
        if (external)
            return;
        REQUIRE(other.guest.code("piece x " + bytes(2 * kMiB)) == kSuccess);
        const std::string again = second_word(other.guest.ask("export b"));
        REQUIRE(owner.guest.code("import c " + again) == kSuccess);
        CHECK(owner.free() == free - kPiece);
        REQUIRE(other.guest.code("unexport b") == kSuccess);
        REQUIRE(other.guest.code("unpiece b") == kSuccess);
        CHECK(owner.free() == free - kPiece);
        CHECK(owner.guest.code("unpiece c") == kSuccess);
        CHECK(owner.free() == free);
    }
    SECTION("the other releases it") {
        if (external) {
            CHECK(other.guest.code("unexternal b") == kSuccess);
            CHECK(owner.free() == free - kPiece);
        }
        CHECK(other.guest.code(external ? "free b" : "unpiece b") == kSuccess);
        CHECK(owner.free() == free);
    }
    SECTION("the other is killed") {
        other.guest.kill(9);
        other.guest.finish();
        CHECK(owner.free() == free);
    }
    SECTION("the maker ends: then nobody is charged, as nobody's figure has it") {
        owner.guest.finish();
        CHECK(other.held().used == 104 * kMiB);
        CHECK(other.guest.code("alloc all " + bytes(other_free)) == kSuccess);
    }
}

TEST_CASE("a context's end gives back nothing of what others keep") {
    Owner owner;
    const uint64_t free = owner.free();
    const std::string way = GENERATE("reset 0", "release 0");
    CAPTURE(way);
    SECTION("after the release") {
        give_away(owner.guest, "a");
        CHECK(owner.guest.code(way) == kSuccess);
        CHECK(owner.guest.code("retain 0") == kSuccess);
        CHECK(owner.free() == free - kPiece);
        CHECK(owner.guest.code("alloc all " + bytes(free - kPiece + 2 * kMiB)) == kOutOfMemory);
        CHECK(owner.guest.code("unexport a") == kSuccess);
    }
    SECTION("before the release, when NVML lists the process no more") {
        REQUIRE(owner.guest.code("piece a " + bytes(kPiece) + " export") == kSuccess);
        REQUIRE(owner.guest.code("export a") == kSuccess);
        CHECK(owner.guest.code(way) == kSuccess);
        CHECK(owner.guest.code("unpiece a") == kSuccess);
        CHECK(owner.guest.code("retain 0") == kSuccess);
        CHECK(owner.free() == free - kPiece);
        CHECK(owner.guest.code("alloc all " + bytes(free - kPiece + 2 * kMiB)) == kOutOfMemory);
        CHECK(owner.guest.code("unexport a") == kSuccess);
    }
    CHECK(owner.free() == free);
}

TEST_CASE("what others keep is no other member's of the job or group, whatever its maker does") {
    const auto settings = GENERATE(Words{"CUSLICE_JOB=shared"}, Words{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"});
    CAPTURE(settings[0]);
    Owner owner(settings);
    Neighbour other(owner, "1024MiB", settings);
    const uint64_t contexts = owner.held().used + other.held().used;
    const uint64_t most = kGiB - 16 * kMiB - contexts;
    const auto together = [&] { return all_of(owner.held()) + all_of(other.held()); };
    // It has said before that all it is charged with is in its figure.
    REQUIRE(owner.guest.code("alloc x " + bytes(16 * kMiB) + " async") == kSuccess);
    REQUIRE(owner.guest.code("freeasync x") == kSuccess);
    REQUIRE(owner.guest.code("sync") == kSuccess);
    give_away(owner.guest, "a");
    CHECK(other.guest.code("alloc most " + bytes(most - kPiece + 16 * kMiB)) == kOutOfMemory);
    CHECK(together() <= kGiB);
    CHECK(other.guest.code("alloc most " + bytes(most - kPiece - 16 * kMiB)) == kSuccess);
    CHECK(together() <= kGiB);
    CHECK(other.guest.code("free most") == kSuccess);
    // Its next call finds that it is gone.
    REQUIRE(owner.guest.code("unexport a") == kSuccess);
    CHECK(other.guest.code("alloc most " + bytes(most - 16 * kMiB)) == kOutOfMemory);
    CHECK(owner.free() > 0);
    CHECK(soon([&] { return other.guest.code("alloc most " + bytes(most - 16 * kMiB)) == kSuccess; }));
    CHECK(together() <= kGiB);
}

TEST_CASE("a partition stays charged with what it exported, and the others have all of theirs") {
    Scene scene("1xt4", {"CUSLICE_SPLIT=0=1GiB+1GiB"}, "2048MiB");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("retain 1") == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    const uint64_t free = scene.free();
    REQUIRE(scene.guest.code("current 1") == kSuccess);
    const uint64_t others = scene.free();
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    give_away(scene.guest, "a");
    CHECK(scene.free() == free - kPiece);
    CHECK(scene.guest.code("alloc b " + bytes(free - kPiece + 2 * kMiB)) == kOutOfMemory);
    REQUIRE(scene.guest.code("current 1") == kSuccess);
    CHECK(scene.free() == others);
    CHECK(scene.guest.code("alloc c " + bytes(others)) == kSuccess);
    CHECK(all_of(scene.held()) <= 2 * kGiB);
    REQUIRE(scene.guest.code("unexport a") == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    CHECK(scene.free() == free);
}

TEST_CASE("the memory of one GPU is no matter on another one") {
    Scene scene("2xt4", {});
    REQUIRE(scene.guest.code("retain 1") == kSuccess);
    const uint64_t others = scene.free();
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free();
    give_away(scene.guest, "a");
    CHECK(scene.free() == free - kPiece);
    CHECK(scene.guest.code("unexport a") == kSuccess);
    CHECK(scene.free() == free);
    CHECK(others == free);
}

}  // namespace
}  // namespace cuslice::tests
