// SPDX-License-Identifier: Apache-2.0
// cuslice's count equals the GPU's books to the byte, whatever a program does with memory, contexts and modules, and
// the books never show more than the limit.
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

TEST_CASE("each kind of allocation is counted as the driver charges it, and its free too") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    const std::string how = GENERATE("plain", "old", "managed", "pitch");
    const uint64_t size = GENERATE(as<uint64_t>(), 1, 511, 512, 513, 65536, 1048577, 33554432);
    CAPTURE(how, size);
    const uint64_t asked = how == "pitch" ? (size + 511) / 512 : size;
    REQUIRE(scene.guest.code("alloc a " + bytes(asked) + " " + how) == kSuccess);
    const uint64_t taken = scene.held().used - used;
    CHECK(taken >= size);
    CHECK(scene.free() == free - taken);
    CHECK(scene.guest.code(how == "old" ? "freeold a" : "free a") == kSuccess);
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
}

TEST_CASE("a pitched allocation that doesn't fit is refused before the GPU holds it") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    // Bare, the rows are an eighth of what they take.
    const uint64_t rows = scene.free() / 512;
    CHECK(scene.guest.code("pitch all 64 " + bytes(2 * rows)) == kOutOfMemory);
    CHECK(scene.guest.code("pitch all 64 " + bytes(rows + 1)) == kOutOfMemory);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.guest.code("pitch all 64 " + bytes(rows)) == kSuccess);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.free() < 512);
}

TEST_CASE("contexts of 0, 300 and 600 MiB are part of the slice") {
    const uint64_t context = GENERATE(as<uint64_t>(), 0, 300, 600);
    const Folder folder;
    Scene scene(gpu_file(folder, "context = \"" + bytes(context) + "MiB\""), {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    CAPTURE(context);
    CHECK(scene.held().used == context * kMiB);
    CHECK(scene.guest.code("fill " + bytes(8 * kMiB)) == kOutOfMemory);
    const Held held = scene.held();
    CHECK(held.peak <= kGiB);
    CHECK(held.used + 8 * kMiB + 16 * kMiB > kGiB);
    // A second context, of the program's own, costs as much again: here there is no room for it.
    if (context) {
        CHECK(scene.guest.code("create own 0") == kOutOfMemory);
        CHECK(scene.held().used == held.used);
        CHECK(scene.held().contexts == 1);
    }
}

TEST_CASE("a context that doesn't fit is refused by name and undone") {
    const Folder folder;
    Scene scene(gpu_file(folder, "context = \"600MiB\""), {}, "512MiB");
    CHECK(scene.guest.code("retain 0") == kOutOfMemory);
    CHECK(scene.held().used == 0);
    CHECK(scene.held().contexts == 0);
    CHECK(scene.guest.code("create own 0") == kOutOfMemory);
    CHECK(scene.held().used == 0);
    const Words said = scene.guest.complaints();
    REQUIRE(said.size() == 2);
    CHECK(said[0].find("cuDevicePrimaryCtxRetain failed") != std::string::npos);
    CHECK(said[1].find("cuCtxCreate") != std::string::npos);
    CHECK(said[0].find("512.0 MiB") != std::string::npos);
}

TEST_CASE("a module that doesn't fit is refused by name and undone; one that does is counted, and given back") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t used = scene.held().used;
    CHECK(scene.guest.code("module small " + bytes(50 * kMiB)) == kSuccess);
    CHECK(scene.held().used == used + 54 * kMiB);
    CHECK(scene.guest.code("alloc a " + bytes(500 * kMiB)) == kSuccess);
    const Held before = scene.held();
    CHECK(scene.guest.code("module large " + bytes(400 * kMiB)) == kOutOfMemory);
    CHECK(scene.held().used == before.used);
    const Words said = scene.guest.complaints();
    REQUIRE(said.size() == 1);
    CHECK(said[0].find("cuModuleLoadData tried to allocate 400.0 MiB") != std::string::npos);
    CHECK(scene.guest.code("unload small") == kSuccess);
    CHECK(scene.held().used == used + 500 * kMiB);
    // The unloaded module's memory can be allocated again.
    CHECK(scene.guest.code("alloc b " + bytes(120 * kMiB)) == kSuccess);
}

TEST_CASE("memory that a pool keeps after a free stays counted, until the pool gives it back") {
    const std::string how = GENERATE("async", "ptsz", "pool=mine", "pool=default");
    CAPTURE(how);
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    if (how == "pool=mine")
        REQUIRE(scene.guest.code("pool mine 0") == kSuccess);
    REQUIRE(scene.guest.code("pool default 0") == kSuccess);
    const std::string pool = how == "pool=mine" ? "mine" : "default";
    REQUIRE(scene.guest.code("keep " + pool + " " + bytes(~0ull)) == kSuccess);
    REQUIRE(scene.guest.code("alloc a " + bytes(300 * kMiB) + " " + how) == kSuccess);
    CHECK(scene.held().used == used + 300 * kMiB);
    CHECK(scene.free() == free - 300 * kMiB);
    CHECK(scene.guest.code("freeasync a") == kSuccess);
    CHECK(scene.guest.code("sync") == kSuccess);
    REQUIRE(scene.held().used == used + 300 * kMiB);  // the pool keeps it
    CHECK(scene.free() == free - 300 * kMiB);
    // From the pool again: nothing new is taken.
    REQUIRE(scene.guest.code("alloc b " + bytes(200 * kMiB) + " " + how) == kSuccess);
    CHECK(scene.held().used == used + 300 * kMiB);
    CHECK(scene.guest.code("freeasync b") == kSuccess);
    CHECK(scene.guest.code("trim " + pool + " " + bytes(100 * kMiB)) == kSuccess);
    CHECK(scene.held().used == used + 100 * kMiB);
    CHECK(scene.free() == free - 100 * kMiB);
    // Before an allocation is refused, pools give back what they keep in reserve.
    REQUIRE(scene.guest.code("alloc c " + bytes(300 * kMiB) + " " + how) == kSuccess);
    CHECK(scene.guest.code("freeasync c") == kSuccess);
    CHECK(scene.guest.code("alloc large " + bytes(free)) == kSuccess);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.guest.code("free large") == kSuccess);
    if (how == "pool=mine")
        CHECK(scene.guest.code("unpool mine") == kSuccess);
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
}

TEST_CASE("a pool that grows in large chunks is refused before the GPU holds more than the limit") {
    const bool known = GENERATE(false, true);  // whether this pool has been seen to grow
    const uint64_t chunk = GENERATE(as<uint64_t>(), 2, 32, 128) * kMiB;
    const uint64_t left = GENERATE(as<uint64_t>(), 1, 16, 31) * kMiB;
    CAPTURE(known, chunk, left);
    const Folder folder;
    Scene scene(gpu_file(folder, "pool-chunk = \"" + bytes(chunk / kMiB) + "MiB\""), {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    if (known) {
        REQUIRE(scene.guest.code("alloc first " + bytes(kMiB) + " async") == kSuccess);
        REQUIRE(scene.guest.code("freeasync first") == kSuccess);
        REQUIRE(scene.guest.code("sync") == kSuccess);
    }
    REQUIRE(scene.guest.code("alloc most " + bytes(scene.free() - left)) == kSuccess);
    const uint64_t free = scene.free();
    // The chunk doesn't fit, or it is not known that it does.
    const bool fits = known && chunk == 2 * kMiB && left > chunk;
    CHECK(scene.guest.code("alloc a " + bytes(kMiB) + " async") == (fits ? kSuccess : kOutOfMemory));
    if (fits) {
        CHECK(scene.guest.code("freeasync a") == kSuccess);
        CHECK(scene.guest.code("sync") == kSuccess);
    }
    // A pool of which nothing is known yet, and which takes more than was believed possible, gives it back.
    if (known || chunk <= 32 * kMiB)
        CHECK(scene.held().peak <= kGiB);
    CHECK(scene.held().used <= kGiB);
    CHECK(scene.free() == free);
    CHECK(scene.guest.code("free most") == kSuccess);
    CHECK(scene.guest.code("fill " + bytes(kMiB) + " async") == kOutOfMemory);
    if (known || chunk <= 32 * kMiB)
        CHECK(scene.held().peak <= kGiB);
    CHECK(scene.held().used <= kGiB);
    CHECK(scene.guest.finish() == 0);
}

TEST_CASE("the end of a context takes its allocations out of the count, and no others") {
    Scene scene("1xlaptop-2g", {}, "1800MiB");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("alloc kept " + bytes(10 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("create own 0") == kSuccess);
    for (const char* name : {"a", "b", "c"}) {
        REQUIRE(scene.guest.code(std::string("alloc ") + name + " " + bytes(100 * kMiB)) == kSuccess);
        REQUIRE(scene.guest.code(std::string("alloc m") + name + " " + bytes(kMiB) + " managed") == kSuccess);
    }
    REQUIRE(scene.guest.code("module m " + bytes(20 * kMiB)) == kSuccess);
    CHECK(scene.held().used == used + (10 + 300 + 300 + 3 + 24) * kMiB);
    CHECK(scene.guest.code("destroy own") == kSuccess);
    CHECK(scene.guest.code("current 0") == kSuccess);
    CHECK(scene.held().used == used + 10 * kMiB);
    CHECK(scene.free() == free - 10 * kMiB);
    CHECK(scene.guest.code("free a") != kSuccess);  // gone with its context
    CHECK(scene.free() == free - 10 * kMiB);
    CHECK(scene.guest.code("free kept") == kSuccess);
    CHECK(scene.free() == free);
}

TEST_CASE("releasing and resetting the primary context ends its allocations, and the slice is whole again") {
    const std::string end = GENERATE("release 0", "reset 0");
    CAPTURE(end);
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc a " + bytes(200 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc b " + bytes(20 * kMiB) + " async") == kSuccess);
    REQUIRE(scene.guest.code("module m " + bytes(20 * kMiB)) == kSuccess);
    if (end == "release 0") {  // it was retained twice
        CHECK(scene.guest.code(end) == kSuccess);
        CHECK(scene.held().used == used + 244 * kMiB);
        CHECK(scene.free() == free - 244 * kMiB);
    }
    CHECK(scene.guest.code(end) == kSuccess);
    CHECK(scene.held().contexts == 0);
    CHECK(scene.guest.code("retain 0") == kSuccess);
    const uint64_t pools = scene.held().used - used;  // a pool is the device's, and may keep what it has
    CHECK(pools <= 20 * kMiB);
    CHECK(scene.free() == free - pools);
    CHECK(scene.guest.code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.held().used + 64 * kMiB > kGiB);
}

// Managed memory may be on the host or on the GPU, so while it lives the driver's own footprint is known within a range
// only; before anything is refused it is measured again, and then it is exact.
TEST_CASE("a module that comes and goes while managed memory lives is out of the count at the next refusal") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free();
    REQUIRE(scene.guest.code("alloc b " + bytes(30 * kMiB) + " managed") == kSuccess);
    CHECK(scene.guest.code("module m 1000") == kSuccess);
    CHECK(scene.guest.code("unload m") == kSuccess);
    CHECK(scene.guest.code("free b") == kSuccess);
    CHECK(scene.guest.code("alloc all " + bytes(free)) == kSuccess);
    CHECK(scene.free() == 0);
    CHECK(scene.guest.code("free all") == kSuccess);
    CHECK(scene.free() == free);
    CHECK(scene.held().peak <= kGiB);
}

// So that a count which is off by a little each time is seen.
TEST_CASE("a long mixed life leaves the count exactly where it began") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    for (int round = 0; round < 30; ++round) {
        CHECK(scene.guest.code("alloc a " + bytes(1000001 + round * 77)) == kSuccess);
        CHECK(scene.guest.code("alloc b " + bytes(3000001) + " managed") == kSuccess);
        CHECK(scene.guest.code("pitch c 1000 " + bytes(1000)) == kSuccess);
        CHECK(scene.guest.code("fill " + bytes(100 * kMiB)) == kOutOfMemory);
        CHECK(scene.guest.code("free b") == kSuccess);
        CHECK(scene.guest.code("module m " + bytes(round * 1000)) == kSuccess);
        CHECK(scene.guest.code("unload m") == kSuccess);
        CHECK(scene.guest.code("alloc b 512") == kSuccess);
        CHECK(scene.guest.code("freeall") == kSuccess);
        CHECK(scene.held().used == used);
        CHECK(scene.free() == free);
    }
    CHECK(scene.held().peak <= kGiB);
}

}  // namespace
}  // namespace cuslice::tests
