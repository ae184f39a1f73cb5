// SPDX-License-Identifier: Apache-2.0
// Each partition of a split GPU is charged its share of the driver's own memory.
#include <algorithm>

#include "tests/preload/device.h"
#include "tests/preload/parts.h"

namespace cuslice::tests {

TEST_CASE("parts are charged the context that they share alike, whichever of them made it") {
    for (const unsigned count : {2u, 3u, 8u}) {
        CAPTURE(count);
        const unsigned first = GENERATE(0u, 1u);
        Parts parts(count);
        REQUIRE(parts.guest.code("retain " + text(first)) == kSuccess);
        for (unsigned i = 0; i < count; i++)
            REQUIRE(parts.guest.code("retain " + text(i)) == kSuccess);
        const uint64_t each = parts.used(0);
        CHECK(each > 0);
        for (unsigned i = 1; i < count; i++) {
            const uint64_t used = parts.used(i);
            CHECK(std::max(used, each) - std::min(used, each) <= 512 * 1024);
        }
        CHECK(parts.held().used == parts.used_by_all());
        // So are modules, which are in that context.
        const uint64_t before = parts.used(0);
        REQUIRE(parts.guest.code("current 1") == kSuccess);
        REQUIRE(parts.guest.code("module big " + text(count * kMiB)) == kSuccess);
        CHECK(parts.used(0) >= before + kMiB);
        CHECK(parts.held().used == parts.used_by_all());
        CHECK(parts.guest.finish() == 0);
        CHECK(parts.guest.complaints().empty());
    }
}

TEST_CASE("parts of different sizes are charged the context in proportion") {
    const Folder books;
    const Words settings{"CUSLICE_SPLIT=0=1500MiB+300MiB", "CUSLICE_HEADROOM=0MiB"};
    Guest guest(Guest::route("linked"), sliced(kGpu, books.path(), settings));
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(guest.code("retain 1") == kSuccess);
    const uint64_t small = 300 * kMiB - guest.number("info");
    enter_device(guest);
    const uint64_t large = 1500 * kMiB - guest.number("info");
    CHECK(small > 0);
    CHECK(large + small == books_of(books.path(), guest.pid()).used);
    const uint64_t expected = 5 * small;
    CHECK(std::max(large, expected) - std::min(large, expected) <= kMiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("a part that is full refuses what the driver would take for another one, and is named") {
    const Folder books;
    const Words settings{"CUSLICE_SPLIT=0=800MiB+800MiB", "CUSLICE_HEADROOM=0MiB"};
    Guest guest(Guest::route("linked"), sliced(kGpu, books.path(), settings));
    REQUIRE(guest.code("init") == kSuccess);
    for (const char* part : {"0", "1"})
        REQUIRE(guest.code("retain " + std::string(part)) == kSuccess);
    REQUIRE(guest.code("current 1") == kSuccess);
    REQUIRE(guest.code("alloc all " + text(guest.number("info"))) == kSuccess);
    REQUIRE(guest.code("current 0") == kSuccess);
    const uint64_t free = guest.number("info");
    const uint64_t used = books_of(books.path(), guest.pid()).used;
    CHECK(guest.code("module big " + text(64 * kMiB)) == kOutOfMemory);
    CHECK(guest.number("info") == free);
    CHECK(books_of(books.path(), guest.pid()).used == used);
    REQUIRE(guest.code("current 1") == kSuccess);
    CHECK(guest.number("info") == 0);
    // With room in it again there is room for the other one's module.
    REQUIRE(guest.code("free all") == kSuccess);
    REQUIRE(guest.code("current 0") == kSuccess);
    CHECK(guest.code("module big " + text(64 * kMiB)) == kSuccess);
    CHECK(guest.finish() == 0);
    const Words said = guest.complaints();
    REQUIRE(said.size() == 1);
    CAPTURE(said[0]);
    CHECK(said[0].find("out of memory on virtual GPU 0 (partition 1 of 2 of GPU 0, ") != std::string::npos);
    CHECK(said[0].find(" on virtual GPU 1 (partition 2 of 2 of GPU 0, ") != std::string::npos);
    CHECK(said[0].find("), which shares its context; 800.0 MiB of the 800.0 MiB limit are in use (") !=
          std::string::npos);
}

}  // namespace cuslice::tests
