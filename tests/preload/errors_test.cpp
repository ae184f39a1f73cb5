// SPDX-License-Identifier: Apache-2.0
// Errors are answered as the driver answers them, and cost the program nothing of its slice.
#include <cstdio>

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

std::string bytes(uint64_t count) { return std::to_string(count); }
const Words kLimit{"CUSLICE_LIMIT=1024MiB", "CUSLICE_HEADROOM=16MiB"};

Words with(Words words, const std::string& more) {
    words.push_back(more);
    return words;
}

TEST_CASE("misuse gets the driver's own answer, and the count stays") {
    const Folder books;
    const auto answers = [&](const Words& environment) {
        Guest guest(Guest::route("linked"), environment);
        Words all;
        const auto ask = [&](const std::string& line) {
            all.push_back(line + " → " + std::to_string(guest.code(line)));
        };
        for (const char* line : {"alloc early 512",
                                 "info",
                                 "retain 0",
                                 "init",
                                 "alloc early 512",
                                 "info",
                                 "retain 0",
                                 "alloc a 65536",
                                 "free a",
                                 "free a",
                                 "freeasync a",
                                 "freeat 0",
                                 "freeat 1",
                                 "freeat 4096",
                                 "freeat 0x7fffffffffffffff",
                                 "freeat 0xffffffffffffffff",
                                 "alloc zero 0",
                                 "alloc zero 0 async",
                                 "alloc zero 0 managed",
                                 "pitch zero 0 0",
                                 "pitch zero 512 0",
                                 "pitch zero 0 512",
                                 "alloc b 65536",
                                 "freeat 512",
                                 "retain 7",
                                 "release 7",
                                 "reset 7",
                                 "total 7",
                                 "alloc c 65536 async",
                                 "free c",
                                 "free c",
                                 "alloc d 65536 managed",
                                 "freeasync d",
                                 "free d",
                                 "create own 0",
                                 "alloc e 65536",
                                 "destroy own",
                                 "destroy own",
                                 "free e",
                                 "current none",
                                 "alloc f 512",
                                 "info",
                                 "free b",
                                 "current 0",
                                 "free b",
                                 "release 0",
                                 "release 0",
                                 "alloc g 512"})
            ask(line);
        return all;
    };
    // Everything fits, so that what is answered differently is ours.
    const Words expected = answers(raw("1xa100-40g", books.path()));
    const Words given = answers(sliced("1xa100-40g", books.path(), {"CUSLICE_LIMIT=8GiB"}));
    for (size_t i = 0; i < expected.size(); ++i)
        CHECK(given[i] == expected[i]);
}

TEST_CASE("frees that are refused change nothing in the count") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), kLimit));
    retain_device(guest);
    const uint64_t free = guest.number("info");
    REQUIRE(guest.code("alloc a " + bytes(64 * kMiB)) == kSuccess);
    REQUIRE(guest.code("free a") == kSuccess);
    for (int i = 0; i < 3; ++i)
        CHECK(guest.code("free a") != kSuccess);
    CHECK(guest.number("info") == free);
    REQUIRE(guest.code("alloc b " + bytes(64 * kMiB)) == kSuccess);
    const uint64_t inside = guest.number("alloc c 2097152") + 512;  // not a block's beginning
    CHECK(guest.code("freeat " + bytes(inside)) != kSuccess);
    CHECK(guest.number("info") == free - 66 * kMiB);
}

TEST_CASE("sizes that are too large for anything are out of memory, and don't wrap") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), kLimit));
    retain_device(guest);
    const uint64_t free = guest.number("info");
    for (const uint64_t size :
         std::vector<uint64_t>{~0ull, ~0ull - 511, ~0ull - 512, 1ull << 63, 1ull << 48, 1ull << 40})
        for (const char* how : {"", " managed", " async"}) {
            CAPTURE(size, how);
            CHECK(guest.code("alloc huge " + bytes(size) + how) == kOutOfMemory);
        }
    CHECK(guest.code("pitch huge " + bytes(~0ull) + " " + bytes(~0ull)) != kSuccess);
    CHECK(guest.code("pitch huge " + bytes(1ull << 33) + " " + bytes(1ull << 33)) != kSuccess);
    CHECK(guest.code("pitch huge " + bytes(1ull << 32) + " " + bytes((1ull << 32) - 1)) == kOutOfMemory);
    CHECK(guest.number("info") == free);
    CHECK(guest.code("alloc all " + bytes(free)) == kSuccess);
    CHECK(books_of(books.path(), guest.pid()).peak <= kGiB);
}

TEST_CASE("what the driver itself refuses is given back to the slice, exactly") {
    const std::string function =
        GENERATE("cuMemAlloc_v2", "cuMemAlloc", "cuMemAllocManaged", "cuMemAllocPitch_v2", "cuMemAllocAsync",
                 "cuMemFree_v2", "cuMemFreeAsync", "cuModuleLoadData", "cuCtxCreate_v2", "cuDevicePrimaryCtxRetain");
    CAPTURE(function);
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(),
                                               with(kLimit, "CUSLICE_FAKE_INJECT=" + function + ":2=719," + function +
                                                                ":3=2," + function + ":4=999")));
    retain_device(guest);
    const uint64_t free = guest.number("info");
    struct Step {
        const char *function, *line, *undo;
    };
    for (const Step& step : {Step{"cuMemAlloc_v2", "alloc a 1000000", "free a"},
                             {"cuMemAlloc", "alloc a 1000000 old", "freeold a"},
                             {"cuMemAllocManaged", "alloc a 1000000 managed", "free a"},
                             {"cuMemAllocPitch_v2", "pitch a 1000 1000", "free a"},
                             {"cuModuleLoadData", "module m 1000000", "unload m"},
                             {"cuCtxCreate_v2", "create own 0", "destroy own"}}) {
        if (function != step.function)
            continue;
        for (const int expected : {kSuccess, kLaunchFailed, kOutOfMemory, kUnknown, kSuccess}) {
            CHECK(guest.code(step.line) == expected);
            if (expected == kSuccess)
                CHECK(guest.code(step.undo) == kSuccess);
            CHECK(guest.code("current 0") == kSuccess);
            CHECK(guest.number("info") == free);
        }
    }
    // A pool may keep whatever it likes, but cuslice must count it as the books do.
    const auto agrees = [&] {
        return guest.number("info") + books_of(books.path(), guest.pid()).used == kGiB - 16 * kMiB;
    };
    if (function == "cuMemAllocAsync" || function == "cuMemFreeAsync")
        for (const int expected : {kSuccess, kLaunchFailed, kOutOfMemory, kUnknown, kSuccess}) {
            CHECK(guest.code("alloc a 1000000 async") == (function == "cuMemAllocAsync" ? expected : kSuccess));
            CHECK(agrees());
            if (function == "cuMemFreeAsync" || expected == kSuccess)
                CHECK(guest.code("freeasync a") == (function == "cuMemFreeAsync" ? expected : kSuccess));
            CHECK(agrees());
            CHECK(guest.code("sync") == kSuccess);
            CHECK(agrees());
        }
    if (function == "cuMemFree_v2") {
        REQUIRE(guest.code("alloc a 1000000") == kSuccess);
        REQUIRE(guest.code("alloc b 1000000") == kSuccess);
        CHECK(guest.code("free a") == kSuccess);
        const uint64_t freed = guest.number("info");
        CHECK(freed + 1000448 == free);
        for (const int expected : {kLaunchFailed, kOutOfMemory, kUnknown}) {
            CHECK(guest.code("free b") == expected);
            CHECK(guest.number("info") == freed);
        }
        CHECK(guest.code("free b") == kSuccess);
        CHECK(guest.number("info") == free);
    }
    if (function == "cuDevicePrimaryCtxRetain") {
        REQUIRE(guest.code("release 0") == kSuccess);
        for (const int expected : {kLaunchFailed, kOutOfMemory, kUnknown, kSuccess}) {
            CHECK(guest.code("retain 0") == expected);
            CHECK(books_of(books.path(), guest.pid()).used == (expected ? 0 : 300 * kMiB));
        }
        CHECK(guest.number("info") == free);
    }
    CHECK(books_of(books.path(), guest.pid()).peak <= kGiB);
    CHECK(guest.complaints().empty());  // the driver's own refusals are not ours to explain
}

TEST_CASE("without a driver CUDA has no device, and programs that merely look go on") {
    const Folder books;
    Words environment = plain({"LD_PRELOAD=" + preload_list(), "CUSLICE_LIMIT=1GiB"});
    const std::string how = GENERATE("searched", "named");
    // A path that isn't there, or whatever the loader would find: on a machine with a driver only the first is sure.
    environment.push_back(how == "named" ? "CUSLICE_DRIVER=/nonexistent/libcuda.so.1"
                                         : "CUSLICE_FAKE_DIR=" + books.path());
    Guest guest(Guest::route("linked"), environment);
    const int init = guest.code("init");
    if (how == "searched" && init != kNoDevice) {
        skip("no driver to be found, as there is one here");
        return;
    }
    CHECK(init == kNoDevice);
    CHECK(guest.code("init") == kNoDevice);
    for (const char* line :
         {"count", "retain 0", "alloc a 512", "info", "total 0", "freeat 4096", "sync", "module m 8"}) {
        CAPTURE(line);
        CHECK(guest.code(line) == kNotInitialized);
    }
    CHECK(guest.code("nvml") == kNvmlLibraryNotFound);
    CHECK(guest.finish() == 0);
    // A limit was asked for, which nothing can hold to: worth one line.
    REQUIRE(guest.complaints().size() == 1);
    const std::string line = guest.complaints()[0];
    CHECK(line.rfind("cuslice: no NVIDIA driver here for CUSLICE_LIMIT: ", 0) == 0);
    CHECK((line.find(". In a container: start it with its GPUs (docker run --gpus all). On a host: install NVIDIA's "
                     "driver package. Without a GPU: --fake 1xt4") != line.npos) == (how == "searched"));
}

TEST_CASE("without a driver nothing is said to programs for which nothing was asked") {
    Guest guest(Guest::route("linked"),
                plain({"LD_PRELOAD=" + preload_list(), "CUSLICE_DRIVER=/nonexistent/libcuda.so.1"}));
    CHECK(guest.code("init") == kNoDevice);
    CHECK(guest.finish() == 0);
    CHECK(guest.err().empty());
}

TEST_CASE("bad configuration fails closed: cuInit is an invalid value, and one line says why") {
    const Folder books;
    struct Case {
        Words settings;
        std::string line;
    };
    for (const Case& one : std::vector<Case>{
             {{"CUSLICE_LIMIT=1024"},
              "cuslice: CUSLICE_LIMIT: 1024: 1024 bytes? did you mean 1024MiB; no GPU will be used"},
             {{"CUSLICE_FRACTION=1.5"}, ""},
             {{"CUSLICE_LIMIT=0=1GiB,nonsense=2GiB"}, ""},
             {{"CUSLICE_FRACTION=0.4", "CUSLICE_LIMIT=1GiB"}, ""},
             {{"CUSLICE_CONFIG=/nonexistent/cuslice.toml"}, ""},
             {{"CUSLICE_LIMIT=7=1GiB"}, ""},
             {{"CUSLICE_LIMIT=GPU-ffffffff=1GiB"}, ""},
         }) {
        CAPTURE(one.settings);
        Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), one.settings));
        CHECK(guest.code("init") == kInvalidValue);
        CHECK(guest.code("init") == kInvalidValue);
        // As before cuInit: not 36, which is about the driver's age.
        CHECK(guest.code("retain 0") == kNotInitialized);
        CHECK(guest.code("alloc a 512") == kNotInitialized);
        const Words said = guest.complaints();
        REQUIRE(said.size() >= 1);
        if (!one.line.empty())
            CHECK(said[0] == one.line);
        CHECK(said.size() == 1);
        CHECK(said[0].ends_with("; no GPU will be used"));
        const std::string& name = one.settings[0].substr(0, one.settings[0].find('='));
        CHECK(said[0].find(name == "CUSLICE_CONFIG" ? "/nonexistent/cuslice.toml" : name) != std::string::npos);
        CHECK(guest.finish() == 0);
    }
}

}  // namespace
}  // namespace cuslice::tests
