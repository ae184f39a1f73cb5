// SPDX-License-Identifier: Apache-2.0
// A context whose size is known from earlier ones: where it doesn't fit, the driver never makes it.
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/preload/guest.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kContext = 300 * kMiB;  // laptop-2g's

std::unique_ptr<Guest> in_job(const Folder& books, const std::string& job, const std::string& limit,
                              const Words& more = {}, const std::string& fake = "1xlaptop-2g") {
    Words settings{"CUSLICE_HEADROOM=16MiB", "CUSLICE_JOB=" + job, "CUSLICE_LIMIT=" + limit};
    settings.insert(settings.end(), more.begin(), more.end());
    auto guest = std::make_unique<Guest>(Guest::route("linked"), sliced(fake, books.path(), settings));
    REQUIRE(guest->code("init") == kSuccess);
    return guest;
}

/// A context is made and ended, so that its size is known.
void learn(const Folder& books, const Words& more = {}, const std::string& fake = "1xlaptop-2g") {
    const auto guest = in_job(books, "first", "1024MiB", more, fake);
    REQUIRE(guest->code("retain 0") == kSuccess);
    REQUIRE(guest->finish() == 0);
}

uint64_t peak(const Folder& books, Guest& guest) { return books_of(books.path(), guest.pid()).peak; }

/// Says in every ledger that contexts take so many bytes. Without layout.h, so that this builds where it lacks them.
void claim(const Folder& books, uint64_t bytes) {
    constexpr std::streamoff kContexts = 224;  // in the header, behind all else
    struct {
        uint64_t kind, bytes;
    } sizes[2];
    for (const auto& entry : std::filesystem::recursive_directory_iterator(books.path())) {
        if (entry.path().extension() != ".ledger")
            continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(kContexts);
        file.read(reinterpret_cast<char*>(sizes), sizeof sizes);
        CHECK(sizes[0].kind != 0);
        for (auto& size : sizes)
            size.bytes = bytes;
        file.seekp(kContexts);
        file.write(reinterpret_cast<const char*>(sizes), sizeof sizes);
    }
}

}  // namespace

TEST_CASE("a context that is known not to fit is refused before the driver makes it") {
    const std::string make = GENERATE(as<std::string>(), "retain 0", "create c 0");
    Folder books;
    SECTION("by another process's context") {
        learn(books);
        const auto guest = in_job(books, "second", "290MiB");
        CHECK(guest->code(make) == kOutOfMemory);
        CHECK(peak(books, *guest) == 0);
        REQUIRE(guest->complaints().size() == 1);
        CHECK(guest->complaints()[0].find("290.0 MiB") != std::string::npos);
    }
    SECTION("where the siblings of its job have the rest") {
        const auto first = in_job(books, "shared", "1024MiB"), second = in_job(books, "shared", "1024MiB");
        REQUIRE(first->code(make) == kSuccess);
        REQUIRE(first->code("alloc x " + std::to_string(500 * kMiB)) == kSuccess);
        CHECK(second->code(make) == kOutOfMemory);
        CHECK(peak(books, *second) == 0);
        REQUIRE(first->code("free x") == kSuccess);
        CHECK(second->code(make) == kSuccess);
    }
}

TEST_CASE("a context that just fits is made, whether its size is known or not") {
    Folder books;
    const bool known = GENERATE(true, false);
    if (known)
        learn(books);
    const auto guest = in_job(books, "second", std::to_string(kContext / kMiB + 16) + "MiB");
    CHECK(guest->code("retain 0") == kSuccess);
    CHECK(peak(books, *guest) == kContext);
}

TEST_CASE("a context of a kind that nobody has made is made before it is refused") {
    Folder books;
    learn(books);
    SECTION("under another variable of CUDA's") {
        const auto guest = in_job(books, "second", "290MiB", {"CUDA_MODULE_LOADING=EAGER"});
        CHECK(guest->code("retain 0") == kOutOfMemory);
        CHECK(peak(books, *guest) == kContext);
    }
    SECTION("a variable that says nothing of contexts makes no other kind") {
        const auto guest = in_job(books, "second", "290MiB", {"CUDA_VISIBLE_DEVICES=0"});
        CHECK(guest->code("retain 0") == kOutOfMemory);
        CHECK(peak(books, *guest) == 0);
    }
}

TEST_CASE("the size of a context is taken from no ledger that says more than a context can take") {
    Folder books;
    learn(books);
    claim(books, GENERATE(as<uint64_t>(), 1ull << 40, ~0ull));
    const auto guest = in_job(books, "second", "400MiB");
    CHECK(guest->code("retain 0") == kSuccess);
}

TEST_CASE("a size that neighbours may have blurred is not kept") {
    Folder books;
    const Folder folder;
    const std::string fake =
        folder.write("gpus.toml", "[driver]\nprocess-list = \"empty\"\n[[gpu]]\nprofile = \"laptop-2g\"\n");
    learn(books, {}, fake);
    const auto guest = in_job(books, "second", "290MiB", {}, fake);
    CHECK(guest->code("retain 0") == kOutOfMemory);
    CHECK(peak(books, *guest) == kContext);
}

}  // namespace cuslice::tests
