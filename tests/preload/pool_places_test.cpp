// SPDX-License-Identifier: Apache-2.0
// Pools whose memory is not a GPU's own: managed memory counts in full, the host's not at all.
#include "tests/preload/parts.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

// A small GPU that may share managed memory with the host.
std::string pascal(const Folder& folder, const std::string& more = "") {
    return gpu_file(folder, "compute-capability = \"9.0\"\n" + more);
}

const Words kManagedPools{"poolat m managed none",    "poolat m managed device",     "poolat m managed host",
                          "poolat m managed node",    "presetpool m managed device", "presetpool m managed host",
                          "presetpool m managed none"};

TEST_CASE("memory of a managed pool counts in full, wherever it is to be, and until it is freed") {
    const std::string pool = GENERATE(from_range(kManagedPools));
    const std::string free_command = GENERATE("free", "freeasync");
    CAPTURE(pool, free_command);
    const Folder folder;
    Scene scene(pascal(folder), {});
    Guest& guest = scene.guest;
    REQUIRE(guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(guest.code(pool) == kSuccess);
    for (int round = 0; round < 2; round++) {
        REQUIRE(guest.code("alloc a " + bytes(100 * kMiB) + " pool=m") == kSuccess);
        CHECK(scene.free() == free - 100 * kMiB);
        CHECK(scene.held().used == used + 100 * kMiB);
        // The first refusal of a pool that nothing was known of comes when the driver has it.
        CHECK(guest.code("alloc b " + bytes(free - 99 * kMiB) + " pool=m") == kOutOfMemory);
        REQUIRE(guest.code("alloc rest " + bytes(scene.free())) == kSuccess);
        CHECK(guest.code("alloc b 4096 pool=m") == kOutOfMemory);
        CHECK(guest.ask("alloc none 0 pool=m") == "0 0");
        CHECK(guest.code("free rest") == kSuccess);
        CHECK(scene.held().used <= kGiB);
        REQUIRE(guest.code(free_command + " a") == kSuccess);
        REQUIRE(guest.code("sync") == kSuccess);
        CHECK(guest.code("alloc c " + bytes(free) + " pool=m") == kSuccess);
        CHECK(guest.code("free c") == kSuccess);
        CHECK(scene.free() == free);
        CHECK(scene.held().used == used);
    }
}

TEST_CASE("a managed pool's end leaves what is out of it counted") {
    const Folder folder;
    Scene scene(pascal(folder), {});
    Guest& guest = scene.guest;
    REQUIRE(guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free();
    REQUIRE(guest.code("poolat m managed device") == kSuccess);
    REQUIRE(guest.code("alloc a " + bytes(100 * kMiB) + " pool=m") == kSuccess);
    REQUIRE(guest.code("unpool m") == kSuccess);
    CHECK(scene.free() == free - 100 * kMiB);
    CHECK(guest.code("free a") == kSuccess);
    CHECK(scene.free() == free);
}

TEST_CASE("memory of a pool of the host counts nothing, even where nothing is left") {
    const std::string pool = GENERATE("poolat h pinned host", "poolat h pinned node", "presetpool h pinned host");
    const std::string allocator = GENERATE("direct", "growth");
    CAPTURE(pool, allocator);
    Scene scene("1xlaptop-2g", {"CUSLICE_ALLOCATOR=" + allocator});
    Guest& guest = scene.guest;
    REQUIRE(guest.code("retain 0") == kSuccess);
    REQUIRE(guest.code("alloc most " + bytes(scene.free())) == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(guest.code(pool) == kSuccess);
    CHECK(guest.code("alloc a " + bytes(100 * kMiB) + " pool=h") == kSuccess);
    CHECK(guest.code("alloc b " + bytes(100 * kMiB) + " pool=h") == kSuccess);
    CHECK(scene.free() == free);
    CHECK(scene.held().used == used);
    CHECK(guest.code("freeasync a") == kSuccess);
    CHECK(guest.code("free b") == kSuccess);
    CHECK(scene.free() == free);
    CHECK(scene.held().used == used);
    CHECK(guest.complaints().empty());
}

TEST_CASE("a partition pays for its managed pools alone, and finds those of its own number") {
    const Folder folder;
    const Folder books;
    const Words settings{"CUSLICE_SPLIT=0=2", "CUSLICE_HEADROOM=16MiB"};
    Guest guest(Guest::route("linked"), sliced(pascal(folder), books.path(), settings));
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(guest.code("retain 1") == kSuccess);
    const uint64_t free_1 = guest.number("info");
    REQUIRE(guest.code("retain 0") == kSuccess);
    const uint64_t free_0 = guest.number("info");
    REQUIRE(guest.code("poolat own managed device 1") == kSuccess);
    REQUIRE(guest.code("presetpool preset managed device 1") == kSuccess);
    REQUIRE(guest.code("poolat anywhere managed none") == kSuccess);
    CHECK(guest.code("presetpool none managed device 2") == kInvalidDevice);
    for (const char* pool : {"own", "preset", "anywhere"}) {
        CAPTURE(pool);
        REQUIRE(guest.code("current 1") == kSuccess);
        CHECK(guest.code("alloc a " + bytes(64 * kMiB) + " pool=" + pool) == kSuccess);
        CHECK(guest.number("info") == free_1 - 64 * kMiB);
        CHECK(guest.code("alloc b " + bytes(free_1) + " pool=" + pool) == kOutOfMemory);
        REQUIRE(guest.code("current 0") == kSuccess);
        CHECK(guest.number("info") == free_0);
        CHECK(guest.code("free a") == kSuccess);
        REQUIRE(guest.code("current 1") == kSuccess);
        CHECK(guest.number("info") == free_1);
    }
}

}  // namespace
}  // namespace cuslice::tests
