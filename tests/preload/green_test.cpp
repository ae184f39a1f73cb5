// SPDX-License-Identifier: Apache-2.0
// Green contexts: what they take themselves, and whose their allocations are.
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

TEST_CASE("what is allocated in a green context is the primary context's, and ends with the last use of that") {
    const Folder folder;
    Scene scene(gpu_file(folder, "compute-capability = \"9.0\"\ncontext = \"100MiB\""), {});
    const bool retained = GENERATE(true, false);
    CAPTURE(retained);
    if (retained)
        REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("green g 0") == kSuccess);
    REQUIRE(scene.guest.code("current g") == kSuccess);
    CHECK(scene.held().used == 200 * kMiB);
    const uint64_t free = scene.free();
    CHECK(free == kGiB - 216 * kMiB);
    REQUIRE(scene.guest.code("alloc a " + bytes(300 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc m " + bytes(kMiB) + " managed") == kSuccess);
    CHECK(scene.free() == free - 301 * kMiB);
    scene.fill_and_free();

    SECTION("destroyed") {
        REQUIRE(scene.guest.code("alloc a " + bytes(300 * kMiB)) == kSuccess);
        CHECK(scene.guest.code("ungreen g") == kSuccess);
        CHECK(scene.held().contexts == (retained ? 1 : 0));
        CHECK(scene.held().used == (retained ? 400 * kMiB : 0));
        if (!retained)
            REQUIRE(scene.guest.code("retain 0") == kSuccess);
        CHECK(scene.guest.code("current 0") == kSuccess);
        CHECK(scene.free() == kGiB - 116 * kMiB - (retained ? 300 * kMiB : 0));
        CHECK(scene.guest.code("free a") == (retained ? kSuccess : kInvalidValue));
    }
    SECTION("reset under it") {
        REQUIRE(scene.guest.code("alloc a " + bytes(300 * kMiB)) == kSuccess);
        CHECK(scene.guest.code("reset 0") == kSuccess);
        CHECK(scene.held().used == 0);
        CHECK(scene.guest.code("ungreen g") == kSuccess);
        CHECK(scene.guest.code("retain 0") == kSuccess);
        CHECK(scene.guest.code("free a") == kInvalidValue);
    }
    // All that was in it went with it: the whole slice can be had, and goes with the primary context's end.
    CHECK(scene.free() == kGiB - 116 * kMiB);
    CHECK(scene.guest.code("alloc all " + bytes(kGiB - 116 * kMiB)) == kSuccess);
    for (int i = 0; i < 3 && scene.held().contexts; i++)
        CHECK(scene.guest.code("release 0") == kSuccess);
    CHECK(scene.held().used == 0);
    CHECK(scene.guest.code("retain 0") == kSuccess);
    CHECK(scene.free() == kGiB - 116 * kMiB);
}

TEST_CASE("a green context that does not fit is undone, and with it the primary context that it brought") {
    const Folder folder;
    Scene scene(gpu_file(folder, "compute-capability = \"9.0\"\ncontext = \"600MiB\""), {});
    CHECK(scene.guest.code("green g 0") == kOutOfMemory);
    CHECK(scene.held().used == 0);
    CHECK(scene.held().contexts == 0);
    REQUIRE(scene.guest.complaints().size() == 1);
    CHECK(scene.guest.complaints()[0].find("cuGreenCtxCreate tried to allocate 1200.0 MiB") != std::string::npos);
    CHECK(scene.guest.code("retain 0") == kSuccess);
    CHECK(scene.free() == kGiB - 616 * kMiB);
}

}  // namespace
}  // namespace cuslice::tests
