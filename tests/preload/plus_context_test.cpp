// SPDX-License-Identifier: Apache-2.0
// Limits without the context: the number is the program's, whatever the driver takes beside it.
#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/parts.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kBlock = 8 * kMiB;
const std::string kLibrary = std::string(CUSLICE_TEST_GUESTS) + "/libguest_library.so";

struct Beside {
    explicit Beside(const Words& settings, unsigned gpus = 1)
        : guest(Guest::route("linked"), sliced(kGpu, books.path(), settings)) {
        REQUIRE(guest.code("init") == kSuccess);
        for (unsigned i = 0; i < gpus; i++)
            REQUIRE(guest.code("retain " + text(i)) == kSuccess);
    }
    // How many bytes the current GPU gives, in blocks.
    uint64_t fill() { return std::stoull(split_words(guest.ask("fill " + text(kBlock))).at(1)) * kBlock; }
    uint64_t held() { return books_of(books.path(), guest.pid()).used; }

    Folder books;
    Guest guest;
};

uint64_t context_of(const std::string& gpu) {
    const Folder books;
    Guest guest(Guest::route("linked"), raw(gpu, books.path()));
    guest.code("init");
    guest.code("retain 0");
    return books_of(books.path(), guest.pid()).used;
}

}  // namespace

TEST_CASE("a limit plus the context is the program's to the byte, and the context comes on top") {
    Beside beside({"CUSLICE_LIMIT=1024MiB+context"});
    CHECK(beside.guest.number("total 0") == kGiB);
    CHECK(beside.guest.number("info") == kGiB);
    CHECK(beside.fill() == kGiB);
    CHECK(beside.guest.number("info") == 0);
    CHECK(beside.held() == kGiB + context_of(kGpu));
    CHECK(beside.guest.code("alloc one 1") == kOutOfMemory);
    CHECK(beside.guest.code("freeall") == kSuccess);
    CHECK(beside.guest.number("info") == kGiB);
    CHECK(beside.fill() == kGiB);
    CHECK(beside.guest.finish() == 0);
    const Words said = beside.guest.complaints();
    REQUIRE_FALSE(said.empty());
    CAPTURE(said[0]);
    CHECK(said[0].find("; 1024.0 MiB of the 1024.0 MiB limit are in use (cuMemAlloc 1024.0 MiB in 128 blocks), "
                       "beside 300.0 MiB of the context. The limit is from CUSLICE_LIMIT. ") != std::string::npos);
}

TEST_CASE("a cache has all of a limit plus the context") {
    for (const std::string allocator : {"growth", "prealloc"}) {
        CAPTURE(allocator);
        Beside beside({"CUSLICE_LIMIT=1024MiB+context", "CUSLICE_ALLOCATOR=" + allocator});
        CHECK(beside.guest.number("total 0") == kGiB);
        CHECK(beside.guest.number("info") == kGiB);
        CHECK(beside.guest.code("alloc all " + text(kGiB)) == kSuccess);
        CHECK(beside.held() == kGiB + context_of(kGpu));
        CHECK(beside.guest.code("alloc one 1") == kOutOfMemory);
    }
}

TEST_CASE("modules come on top of a limit plus the context as well, up to what the GPU has") {
    Beside beside({"CUSLICE_LIMIT=1024MiB+context"});
    REQUIRE(beside.fill() == kGiB);
    const uint64_t before = beside.held();
    CHECK(beside.guest.code("module some " + text(100 * kMiB)) == kSuccess);
    CHECK(beside.held() >= before + 100 * kMiB);
    // It takes nothing of the program's, which has no less and no more.
    CHECK(beside.guest.code("alloc one 1") == kOutOfMemory);
    CHECK(beside.guest.code("freeall") == kSuccess);
    CHECK(beside.guest.number("info") == kGiB);
    // No limit can give memory that the GPU doesn't have.
    CHECK(beside.guest.code("module other " + text(2 * kGiB)) == kOutOfMemory);
    CHECK(beside.guest.number("info") == kGiB);
    CHECK(beside.fill() == kGiB);
    CHECK(beside.guest.finish() == 0);
}

TEST_CASE("a headroom that is given is kept of a limit plus the context") {
    Beside beside({"CUSLICE_LIMIT=1024MiB+context", "CUSLICE_HEADROOM=16MiB"});
    CHECK(beside.guest.number("info") == kGiB - 16 * kMiB);
    CHECK(beside.fill() == kGiB - 16 * kMiB);
}

TEST_CASE("what CUDA's own libraries allocate comes on top of a limit plus the context") {
    for (const std::string allocator : {"direct", "growth"}) {
        CAPTURE(allocator);
        Beside beside({"CUSLICE_LIMIT=1024MiB+context", "CUSLICE_ALLOCATOR=" + allocator});
        REQUIRE(beside.guest.code("alloc all " + text(kGiB)) == kSuccess);
        const uint64_t before = beside.held();
        CHECK(beside.guest.code("workspace " + kLibrary + " handle " + text(32 * kMiB)) == kSuccess);
        CHECK(beside.guest.code("workspace " + kLibrary + " other " + text(32 * kMiB)) == kSuccess);
        CHECK(beside.held() == before + 64 * kMiB);
        CHECK(beside.guest.code("alloc one 1") == kOutOfMemory);
        CHECK(beside.guest.code("free handle") == kSuccess);
        CHECK(beside.held() == before + 32 * kMiB);
        CHECK(beside.guest.code("alloc one 1") == kOutOfMemory);
        CHECK(beside.guest.code("free all") == kSuccess);
        CHECK(beside.guest.number("info") == kGiB);
        CHECK(beside.guest.code("free other") == kSuccess);
        CHECK(beside.guest.code("alloc all " + text(kGiB)) == kSuccess);
        CHECK(beside.held() == before);
    }
    // Where the GPU itself has no more, what is cached makes room.
    Beside cached({"CUSLICE_LIMIT=1600MiB+context", "CUSLICE_ALLOCATOR=growth"});
    REQUIRE(cached.guest.code("alloc all " + text(1600 * kMiB)) == kSuccess);
    CHECK(cached.guest.code("workspace " + kLibrary + " handle " + text(200 * kMiB)) == kOutOfMemory);
    REQUIRE(cached.guest.code("free all") == kSuccess);
    CHECK(cached.guest.code("workspace " + kLibrary + " handle " + text(200 * kMiB)) == kSuccess);
    // A plain limit includes the libraries' memory, as it includes everything else.
    Beside plain({"CUSLICE_LIMIT=1024MiB"});
    plain.fill();
    CHECK(plain.guest.code("workspace " + kLibrary + " handle " + text(32 * kMiB)) == kOutOfMemory);
}

TEST_CASE("parts have the context on top where the GPU's limit has, or their sizes say so") {
    for (const Words& settings :
         {Words{"CUSLICE_LIMIT=1024MiB+context", "CUSLICE_SPLIT=0=2"}, Words{"CUSLICE_SPLIT=0=512MiB+512MiB+context"},
          Words{"CUSLICE_LIMIT=1024MiB+context", "CUSLICE_SPLIT=0=512MiB+rest"}}) {
        CAPTURE(settings);
        Beside beside(settings, 2);
        for (const std::string part : {"0", "1"}) {
            REQUIRE(beside.guest.code("current " + part) == kSuccess);
            CHECK(beside.guest.number("total " + part) == 512 * kMiB);
            CHECK(beside.guest.number("info") == 512 * kMiB);
            CHECK(beside.fill() == 512 * kMiB);
        }
        CHECK(beside.held() == kGiB + context_of(kGpu));
    }
}

TEST_CASE("parts whose context comes on top stay within their GPU's limit, which the context counts in") {
    Beside beside({"CUSLICE_LIMIT=1024MiB", "CUSLICE_SPLIT=0=512MiB+512MiB+context", "CUSLICE_HEADROOM=0MiB"}, 2);
    REQUIRE(beside.guest.code("current 0") == kSuccess);
    CHECK(beside.fill() == 512 * kMiB);
    REQUIRE(beside.guest.code("current 1") == kSuccess);
    beside.fill();
    CHECK(beside.held() <= kGiB);
    CHECK(beside.held() + kBlock > kGiB);
    CHECK(beside.guest.finish() == 0);
    const Words said = beside.guest.complaints();
    REQUIRE(said.size() == 2);
    CHECK(said[1].find(" of the 1024.0 MiB limit of the whole GPU are in use by this partition (") !=
          std::string::npos);
}

TEST_CASE("processes of a job share a limit plus the context, and each one's context comes on top") {
    const Folder books;
    const Words job{"CUSLICE_LIMIT=1024MiB+context", "CUSLICE_JOB=shared"};
    const auto start = [&] {
        auto guest = std::make_unique<Guest>(Guest::route("linked"), sliced(kGpu, books.path(), job));
        retain_device(*guest);
        return guest;
    };
    auto one = start(), two = start();
    CHECK(one->code("alloc a " + text(700 * kMiB)) == kSuccess);
    CHECK(two->number("info") == 324 * kMiB);
    CHECK(two->code("alloc a " + text(325 * kMiB)) == kOutOfMemory);
    CHECK(two->code("alloc a " + text(324 * kMiB)) == kSuccess);
    CHECK(one->code("alloc more 1") == kOutOfMemory);
    one->kill(9);
    one->finish();
    CHECK(two->code("alloc b " + text(700 * kMiB)) == kSuccess);
    CHECK(books_of(books.path(), two->pid()).used == kGiB + context_of(kGpu));
}

}  // namespace cuslice::tests
