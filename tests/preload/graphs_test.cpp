// SPDX-License-Identifier: Apache-2.0
// Memory that graphs take when they are launched.
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

TEST_CASE("a graph's memory is counted from its launch to the trim after its free") {
    const std::string make = GENERATE("graph g 10000000 3 leave", "capture g 30000000 leave");
    CAPTURE(make);
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code(make) == kSuccess);
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
    for (int i = 0; i < 3; i++) {
        CHECK(scene.guest.code("launch g") == kSuccess);
        const uint64_t taken = scene.held().used - used;
        CHECK(taken >= 30000000);
        CHECK(scene.free() == free - taken);
        CHECK(scene.guest.code("graphfree g") == kSuccess);
        CHECK(scene.held().used == used + taken);
        CHECK(scene.free() == free - taken);
    }
    // The device's reserve of graph memory is trimmed before anything is refused.
    CHECK(scene.guest.code("alloc all " + bytes(free)) == kSuccess);
    CHECK(scene.free() == 0);
    CHECK(scene.guest.code("free all") == kSuccess);
    CHECK(scene.guest.code("launch g") == kSuccess);
    CHECK(scene.guest.code("ungraph g") == kSuccess);
    CHECK(scene.held().used > used);
    CHECK(scene.free() == free - (scene.held().used - used));
    CHECK(scene.guest.code("graphfree g") == kSuccess);
    CHECK(scene.guest.code("graphtrim") == kSuccess);
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
}

TEST_CASE("a launch that doesn't fit is refused before it takes anything") {
    const std::string call = GENERATE("launch g", "upload g");
    CAPTURE(call);
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("graph g " + bytes(100 * kMiB) + " 5 free") == kSuccess);
    REQUIRE(scene.guest.code("alloc most " + bytes(free - 499 * kMiB)) == kSuccess);
    const Held before = scene.held();
    CHECK(scene.guest.code(call) == kOutOfMemory);
    CHECK(scene.held().peak == before.peak);
    CHECK(scene.free() == 499 * kMiB);
    REQUIRE(scene.guest.complaints().size() == 1);
    const std::string name = call == "launch g" ? "cuGraphLaunch" : "cuGraphUpload";
    CHECK(scene.guest.complaints()[0].find(name + " tried to allocate 500.0 MiB") != std::string::npos);
    CHECK(scene.guest.code("free most") == kSuccess);
    REQUIRE(scene.guest.code("alloc most " + bytes(free - 512 * kMiB)) == kSuccess);
    CHECK(scene.guest.code(call) == kSuccess);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.free() == 512 * kMiB - (scene.held().used - used - (free - 512 * kMiB)));
    // Once it has its memory it fits however little is left.
    REQUIRE(scene.guest.code("alloc rest " + bytes(scene.free())) == kSuccess);
    CHECK(scene.guest.code(call) == kSuccess);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.guest.code("ungraph g") == kSuccess);
    CHECK(scene.guest.code("free most") == kSuccess);
    CHECK(scene.guest.code("free rest") == kSuccess);
    CHECK(scene.guest.code("graphtrim") == kSuccess);
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
}

TEST_CASE("an instance that takes its memory at once is refused at once") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free();
    CHECK(scene.guest.code("graph large " + bytes(free + kMiB) + " 1 free 2") == kOutOfMemory);  // 2: upload
    CHECK(scene.free() == free);
    CHECK(scene.guest.code("graph small " + bytes(100 * kMiB) + " 1 free 2") == kSuccess);
    CHECK(scene.free() < free - 99 * kMiB);
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("capturing an allocation takes nothing, even where nothing is left") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc most " + bytes(scene.free())) == kSuccess);
    CHECK(scene.guest.code("capture g " + bytes(200 * kMiB) + " free") == kSuccess);
    CHECK(scene.guest.complaints().empty());
    CHECK(scene.guest.code("launch g") == kOutOfMemory);
    CHECK(scene.guest.code("free most") == kSuccess);
    CHECK(scene.guest.code("launch g") == kSuccess);
    CHECK(scene.held().peak <= kGiB);
}

}  // namespace
}  // namespace cuslice::tests
