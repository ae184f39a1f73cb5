// SPDX-License-Identifier: Apache-2.0
// Freed memory that can't be used again at once, or never: how much of it there is at most.
#include <algorithm>

#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

Words growth(const std::string& free, const Words& more = {}) {
    Words words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

void create_contexts(Scene& scene, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
        REQUIRE(scene.guest.code("create c" + std::to_string(i) + " 0") == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
}

}  // namespace

TEST_CASE("deferred: where the driver has no fences, no more than 64 MiB or a quarter of what is live is parked") {
    const bool many_contexts = GENERATE(false, true);
    const uint64_t live = GENERATE(0, 1024) * kMiB;
    CAPTURE(many_contexts, live);
    const Words no_fences{"CUSLICE_FAKE_INJECT=cuCtxRecordEvent:*=801"};
    Scene scene("1xt4", growth("deferred", many_contexts ? Words{} : no_fences), "12GiB");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    if (many_contexts)
        create_contexts(scene, 16);
    if (live)
        REQUIRE(scene.guest.code("alloc live " + bytes(live)) == kSuccess);
    const uint64_t before = scene.held().used, most = std::max(64 * kMiB, live / 4);
    for (int i = 0; i < 100; ++i) {
        REQUIRE(scene.guest.code("alloc a " + bytes(8 * kMiB)) == kSuccess);
        REQUIRE(scene.guest.code("free a") == kSuccess);
    }
    // The cache grows in steps of an eighth to a half of what it holds.
    CHECK(scene.held().used < before + most + most / 2 + 32 * kMiB);
    // Not during a capture, which a wait would end.
    REQUIRE(scene.guest.code("begin s relaxed") == kSuccess);
    for (int i = 0; i < 50; ++i) {
        REQUIRE(scene.guest.code("alloc a " + bytes(8 * kMiB)) == kSuccess);
        REQUIRE(scene.guest.code("free a") == kSuccess);
    }
    CHECK(scene.guest.code("end s") == kSuccess);
}

TEST_CASE("strict: with more contexts than can be waited for, what is freed is parked until it can") {
    const std::string size = GENERATE("1000", "1000000");
    CAPTURE(size);
    Scene scene("1xt4", growth("strict"), "12GiB");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t block = scene.guest.number("alloc a " + size);
    create_contexts(scene, 64);
    CHECK(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.code("free a") == kInvalidValue);
    CHECK(scene.guest.number("alloc b " + size) != block);
    REQUIRE(scene.guest.code("destroy c0") == kSuccess);
    CHECK(scene.guest.code("free b") == kSuccess);
    // A request that needs the parked memory waits for it.
    CHECK(scene.guest.number("memorystats 0", 10) > 0);
    CHECK(scene.guest.code("alloc all " + bytes(100 * kGiB)) == kOutOfMemory);
    CHECK(scene.guest.number("memorystats 0", 10) == 0);
}

TEST_CASE("a program that exports each of its blocks holds no more than what is live") {
    const std::string size = GENERATE("5000", "300000", "1048576"), how = GENERATE("ipcget a", "tokens a");
    CAPTURE(size, how);
    Scene scene("1xt4", growth("strict"));
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc first 100000") == kSuccess);
    const uint64_t before = scene.held().used, count = 400;
    uint64_t live = 0;
    for (uint64_t i = 0; i < count; ++i) {
        CAPTURE(i);
        REQUIRE(scene.guest.code("alloc a " + size) == kSuccess);
        REQUIRE(scene.guest.ask(how) != "");  // whatever the driver makes of it
        if (i % 6 == 0) {
            REQUIRE(scene.guest.code("alloc live" + std::to_string(i) + " 100000") == kSuccess);
            live += 100'000;
        }
        REQUIRE(scene.guest.code("free a") == kSuccess);
    }
    CHECK(scene.held().used <= before + live + 16 * kMiB);
    // Blocks of other sizes are cached as ever.
    const uint64_t block = scene.guest.number("alloc b 200000"), held = scene.held().used;
    REQUIRE(scene.guest.code("free b") == kSuccess);
    CHECK(scene.held().used == held);
    CHECK(scene.guest.number("alloc b 200000") == block);
}

TEST_CASE("blocks of sizes that were exported come out of the cache where there is no other memory") {
    const std::string allocator = GENERATE("growth", "prealloc");
    CAPTURE(allocator);
    Scene scene("1xt4", {"CUSLICE_ALLOCATOR=" + allocator});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc a 1048576") == kSuccess);
    REQUIRE(scene.guest.code("fill 1048576") == kOutOfMemory);
    REQUIRE(scene.guest.code("ipcget a") == kSuccess);
    // Every other one, so that no segment is idle.
    for (int i = 2; i < 400; i += 2)
        REQUIRE(scene.guest.code("free fill" + std::to_string(i)) == kSuccess);
    CHECK(scene.guest.number("fill 1048576") >= 199);
}

}  // namespace cuslice::tests
