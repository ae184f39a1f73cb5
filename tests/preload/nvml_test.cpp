// SPDX-License-Identifier: Apache-2.0
// NVML shows the slice, to the program itself and to one that only watches.
#include <cstdio>

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const Words kLimit{"CUSLICE_LIMIT=0=1024MiB", "CUSLICE_HEADROOM=16MiB"};

TEST_CASE("NVML's memory info is the slice, in both versions, in figures that agree with CUDA's") {
    const Folder books;
    Guest guest(Guest::route("linked"),
                sliced("1xlaptop-2g,1xt4", books.path(), {kLimit[0], kLimit[1], "CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
    REQUIRE(guest.code("nvml") == kSuccess);
    // Before the program has a context it holds nothing of the slice.
    CHECK(split_words(guest.ask("nvmlmemory 0")) == Words{"0", std::to_string(kGiB), std::to_string(kGiB), "0"});
    retain_device(guest);
    REQUIRE(guest.code("alloc a 104857600") == kSuccess);
    const uint64_t free = guest.number("info"),
                   used = books_of(books.path(), guest.pid(), split_words(guest.ask("uuid 0")).at(1)).used;
    CHECK(used == 400 * kMiB);
    // The headroom is the reserved part, which NVML's first version counts as used.
    CHECK(split_words(guest.ask("nvmlmemory 0")) ==
          Words{"0", std::to_string(kGiB), std::to_string(free), std::to_string(used + 16 * kMiB)});
    CHECK(split_words(guest.ask("nvmlmemory2 0")) ==
          Words{"0", std::to_string(kGiB), std::to_string(free), std::to_string(used), std::to_string(16 * kMiB)});
    // The other GPU has no limit: NVML's own figures.
    CHECK(guest.number("nvmlmemory 1") > 10 * kGiB);
}

TEST_CASE("figures add up: used, free and reserved are the total, in every mode, to the program and to a watcher") {
    const Words splits{"CUSLICE_SPLIT=0=2"}, limit{"CUSLICE_LIMIT=1GiB"};
    for (const Words& slice : {splits, limit})
        for (const char* mode : {"direct", "growth", "prealloc"}) {
            CAPTURE(slice[0], mode);
            const Folder books;
            const Words settings{slice[0], std::string("CUSLICE_ALLOCATOR=") + mode};
            Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings));
            Guest watcher(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings));
            REQUIRE(watcher.code("nvml") == kSuccess);
            REQUIRE(guest.code("nvml") == kSuccess);
            const auto add_up = [](Guest& who) {
                const uint64_t total = who.number("nvmlmemory 0", 1), free = who.number("nvmlmemory 0", 2);
                CHECK(free + who.number("nvmlmemory 0", 3) == total);
                const Words second = split_words(who.ask("nvmlmemory2 0"));
                CHECK(std::stoull(second.at(2)) + std::stoull(second.at(3)) + std::stoull(second.at(4)) == total);
                CHECK(std::stoull(second.at(1)) == total);
                return free;
            };
            add_up(guest);
            REQUIRE(guest.code("init") == kSuccess);
            add_up(guest);
            REQUIRE(guest.code("retain 0") == kSuccess);
            const auto can_be_had = [&](uint64_t bytes) {
                CHECK(guest.code("alloc whole " + std::to_string(bytes)) == kSuccess);
                CHECK(guest.code("free whole") == kSuccess);
            };
            const bool caches = std::string(mode) != "direct";
            can_be_had(guest.number("info"));
            for (const char* command : {"alloc a 104857600", "alloc b 1000", "free a", "free b"}) {
                REQUIRE(guest.code(command) == kSuccess);
                add_up(watcher);
                const uint64_t free = add_up(guest);
                CHECK(guest.number("info") == free);
                // As one block, unless a cache's segments are in use: their free bytes lie apart.
                if (!caches || std::string(command) == "free b")
                    can_be_had(free);
            }
        }
}

TEST_CASE("NVML knows what a memory pool has given back before CUDA is asked") {
    for (const char* slice : {"CUSLICE_LIMIT=1GiB", "CUSLICE_SPLIT=0=2"}) {
        CAPTURE(slice);
        const Folder books;
        Guest guest(Guest::route("linked"), sliced("1xt4", books.path(), {slice}));
        REQUIRE(guest.code("nvml") == kSuccess);
        for (const char* command : {"init", "retain 0", "pool default 0", "keep default 1073741824",
                                    "alloc x 104857600 async", "freeasync x", "sync"})
            REQUIRE(guest.code(command) == kSuccess);
        const uint64_t kept = guest.number("nvmlmemory 0", 2);
        CHECK(guest.number("info") == kept);
        REQUIRE(guest.code("trim default 0") == kSuccess);
        const uint64_t free = guest.number("nvmlmemory 0", 2), used = guest.number("nvmlmemory 0", 3);
        CHECK(free >= kept + 100 * kMiB);
        CHECK(free + used == guest.number("nvmlmemory 0", 1));
        CHECK(guest.number("info") == free);
    }
}

TEST_CASE("a watcher under cuslice sees the slice's total, one without the whole GPU") {
    const Folder books;
    Guest user(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), kLimit));
    retain_device(user);
    Guest watcher(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), kLimit));
    REQUIRE(watcher.code("nvml") == kSuccess);
    CHECK(watcher.number("nvmlmemory 0", 1) == kGiB);
    CHECK(watcher.number("nvmlmemory 0", 2) <= kGiB);
    Guest outside(Guest::route("linked"), raw("1xlaptop-2g", books.path()));
    REQUIRE(outside.code("nvml") == kSuccess);
    CHECK(outside.number("nvmlmemory 0", 1) > 2000 * kMiB);
    CHECK(outside.number("nvmlmemory 0", 3) >= 300 * kMiB);
    // The free memory shown is no more than the GPU has left: another process has taken most of it.
    Guest hog(Guest::route("linked"), raw("1xlaptop-2g", books.path()));
    retain_device(hog);
    REQUIRE(hog.code("fill 67108864") == kOutOfMemory);
    CHECK(watcher.number("nvmlmemory 0", 2) < 128 * kMiB);
    CHECK(user.number("info") < 128 * kMiB);
}

TEST_CASE("NVML by absolute path is caught too") {
    const Folder books;
    const Outcome outcome =
        run({kPython, "-c",
             "import ctypes, sys\n"
             "n = ctypes.CDLL(sys.argv[1]); assert n.nvmlInit_v2() == 0\n"
             "h = ctypes.c_void_p(); assert n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(h)) == 0\n"
             "m = (ctypes.c_ulonglong * 3)(); assert n.nvmlDeviceGetMemoryInfo(h, m) == 0; print(m[0])\n",
             kFakeFolder + "/libnvidia-ml.so.1"},
            sliced("1xlaptop-2g", books.path(), kLimit));
    CHECK(outcome.out == std::to_string(kGiB) + "\n");
    CHECK(outcome.err == "");
}

TEST_CASE("a failed nvmlInit is told in NVML's own status, in each of its forms, and is tried again") {
    if (kPython.empty() || kSanitizer == "thread") {
        skip("no python3 here, or one that can't have the sanitizer's runtime");
        return;
    }
    // Without CUSLICE_FAKE the fake's NVML finds no driver; then there is one.
    const std::string program =
        "import ctypes, os\n"
        "n = ctypes.CDLL('libnvidia-ml.so.1')\n"
        "init = lambda: [n.nvmlInit(), n.nvmlInit_v2(), n.nvmlInitWithFlags(0)]\n"
        "count = lambda: n.nvmlDeviceGetCount_v2(ctypes.byref(ctypes.c_uint()))\n"
        "print(count(), init(), init(), count())\n"
        "os.environ['CUSLICE_FAKE'] = '2xt4'\n"
        "print(init(), count(), [n.nvmlShutdown() for _ in range(4)], count())\n";
    const Words setting{"LD_LIBRARY_PATH=" + kFakeFolder};
    const Outcome native = run({kPython, "-c", program}, plain({setting[0], "LD_PRELOAD=" + kSanitizerRuntime}));
    REQUIRE(native.out == "1 [9, 9, 9] [9, 9, 9] 1\n[0, 0, 0] 0 [0, 0, 0, 1] 1\n");
    for (const char* more : {"CUSLICE_LOG=warn", "CUSLICE_LIMIT=1GiB", "CUSLICE_GPUS=0"}) {
        CAPTURE(more);
        const Outcome ours = run({kPython, "-c", program}, plain({setting[0], "LD_PRELOAD=" + preload_list(), more}));
        CHECK(ours.out == native.out);
        CHECK(ours.err == native.err);
    }
}

// The program's own initialisations and cuslice's are counted apart.
TEST_CASE("NVML answers a program as often as it has initialised it, whatever cuslice has done for itself") {
    const std::string mode = GENERATE("plain", "direct", "split");
    CAPTURE(mode);
    const Folder books;
    Words settings{"CUSLICE_HEADROOM=16MiB", mode == "split" ? "CUSLICE_SPLIT=0=500MiB+500MiB" : "CUSLICE_LIMIT=1GiB"};
    Guest guest(Guest::route("linked"),
                mode == "plain" ? raw("1xlaptop-2g", books.path()) : sliced("1xlaptop-2g", books.path(), settings));
    CHECK(guest.code("nvmlcount") == kNvmlUninitialized);
    retain_device(guest);
    // cuslice measures by NVML from here on.
    CHECK(guest.code("nvmlcount") == kNvmlUninitialized);
    CHECK(guest.code("nvmlshutdown") == kNvmlUninitialized);
    CHECK(guest.code("nvmldriver") == kSuccess);
    for (int round = 0; round < 2; round++) {
        CHECK(guest.code("nvml") == kSuccess);
        CHECK(guest.code("nvml") == kSuccess);
        CHECK(guest.code("nvmlshutdown") == kSuccess);
        CHECK(guest.code("nvmlcount") == kSuccess);
        CHECK(guest.code("nvmlshutdown") == kSuccess);
        CHECK(guest.code("nvmlcount") == kNvmlUninitialized);
        CHECK(guest.code("nvmlshutdown") == kNvmlUninitialized);
        CHECK(guest.code("nvmlshutdown") == kNvmlUninitialized);
    }
    CHECK(guest.finish() == 0);
}

TEST_CASE("a shutdown of NVML too many leaves the limit in place") {
    const bool initialises = GENERATE(true, false);
    CAPTURE(initialises);
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), kLimit));
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(guest.code("create one 0") == kSuccess);
    if (initialises)
        REQUIRE(guest.code("nvml") == kSuccess);
    guest.ask("nvmlshutdown");
    guest.ask("nvmlshutdown");
    guest.code("create other 0");
    guest.ask("fill " + std::to_string(8 * kMiB));
    CHECK(books_of(books.path(), guest.pid()).peak <= kGiB + 300 * kMiB);  // a context is undone afterwards
    CHECK(books_of(books.path(), guest.pid()).used <= kGiB);
    CHECK(guest.finish() == 0);
}

}  // namespace
}  // namespace cuslice::tests
