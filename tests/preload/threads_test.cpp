// SPDX-License-Identifier: Apache-2.0
// Many threads, threads that are cancelled in the middle of a call, and forks in the middle of everything: the host
// lives, and the count is right.
#include <gnu/libc-version.h>

#include <cstdio>

#include "policy/base/lock_order.h"
#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kNoneUnderTsan =
    "asynchronous cancellation: every instrumented function has a clean-up at its end, which the unwinder finds from a "
    "call and not from between two instructions, where it ends the program";

// True from glibc 2.34 on: whoever cancels finds the thread asynchronous, and its signal strikes in a system call that
// the thread makes before it arrives, although cancellation is disabled by then.
bool strikes_in_later_calls() {
    unsigned major = 0, minor = 0;
    std::sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor);
    return major == 2 && minor >= 34;
}

std::string bytes(uint64_t count) { return std::to_string(count); }

// The slice as a program sees it and as the books have it, and that the two agree to the byte.
struct Counted {
    Counted(Guest& guest, const Folder& books)
        : free(guest.number("info")), used(books_of(books.path(), guest.pid()).used) {}
    uint64_t free, used;
    bool operator==(const Counted&) const = default;
};

Words settings(const std::string& inject = "") {
    Words all{"CUSLICE_LIMIT=1024MiB", "CUSLICE_HEADROOM=16MiB"};
    if (!inject.empty())
        all.push_back("CUSLICE_FAKE_INJECT=" + inject);
    return all;
}

TEST_CASE("64 threads allocate and free, and the count is exactly what it was") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings()));
    retain_device(guest);
    const Counted before(guest, books);
    const std::string storm = GENERATE("storm 64 300 65536", "storm 64 300 100000000");  // never and often refused
    CAPTURE(storm);
    CHECK(guest.number(storm) == 0);
    const Counted after(guest, books);
    CHECK(after.free == before.free);
    CHECK(after.used == before.used);
    CHECK(books_of(books.path(), guest.pid()).peak <= kGiB);
    // Not a unit is lost: all of it can be had in one piece.
    CHECK(guest.code("alloc all " + bytes(before.free)) == kSuccess);
    CHECK(guest.code("free all") == kSuccess);
}

TEST_CASE("a thread cancelled inside a call leaves the host alive and the count right") {
    const std::string type = GENERATE("deferred", "asynchronous");
    const std::string what = GENERATE("alloc", "async", "info", "retain");
    CAPTURE(type, what);
    if (kSanitizer == "thread" && type == "asynchronous") {
        skip(kNoneUnderTsan);
        return;
    }
    const Folder books;
    // Each call takes its time in the driver, so that it is there that the threads are met: sleeping, where a deferred
    // cancellation strikes, or computing. (Asleep an asynchronous one is not to be held off: glibc 2.36 lets it strike
    // in a system call even while cancellation is disabled, if its signal was on its way before.)
    const std::string delay = type == "deferred" ? "=300us" : "=150us";
    std::string delays;
    for (const char* function : {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocAsync", "cuMemFreeAsync",
                                 "cuDevicePrimaryCtxRetain", "cuMemPoolGetAttribute", "cuMemGetInfo_v2"})
        delays += (delays.empty() ? "delay:" : ",delay:") + std::string(function) + delay;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings(delays)));
    retain_device(guest);
    // A pool that is in use makes every question for free memory ask it too.
    REQUIRE(guest.code("alloc pooled 1048576 async") == kSuccess);
    const Counted before(guest, books);
    REQUIRE(guest.ask("cancel " + what + " " + type + " 40") == "0 40");
    const Counted after(guest, books);
    // A block whose address the thread hadn't got yet when it ended lives on; but then both say so.
    CHECK(after.used >= before.used);
    CHECK(before.free - after.free == after.used - before.used);
    CHECK(guest.number("storm 8 50 65536") == 0);  // nobody holds a lock that the dead have left
    CHECK(guest.code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(books_of(books.path(), guest.pid()).peak <= kGiB);
    while (guest.code("release 0") == kSuccess)
        continue;
    CHECK(guest.code("retain 0") == kSuccess);
    const Counted anew(guest, books);
    CHECK(anew.used <= before.used);  // less by the pool's, unless a pool outlives its context
    CHECK(anew.free + anew.used == before.free + before.used);
    CHECK(guest.finish() == 0);
}

TEST_CASE("a thread cancelled anywhere in a cache leaves no lock and no segment behind") {
    const std::string type = GENERATE("deferred", "asynchronous");
    const bool past_us = GENERATE(false, true);
    CAPTURE(type, past_us);
    if (kSanitizer == "thread" && type == "asynchronous") {
        skip(kNoneUnderTsan);
        return;
    }
    // Its signal may be on its way longer than the library can wait for one that it doesn't know of.
    if (past_us && type == "asynchronous" && strikes_in_later_calls()) {
        skip("this C library lets it strike in a system call, even while cancellation is disabled");
        return;
    }
    const Folder books;
    Words growth = settings();
    growth.push_back("CUSLICE_ALLOCATOR=growth");
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), growth));
    retain_device(guest);
    for (const std::string what : {"large", "alloc"})
        REQUIRE(guest.ask("cancel " + what + " " + type + " 20" + (past_us ? " past" : "")) == "0 20");
    // Two of the blocks that the dead have left fill a segment at most; nobody waits for them.
    CHECK(guest.number("storm 8 50 16777216") == 0);
    CHECK(guest.code("alloc all 268435456") == kSuccess);
    CHECK(guest.code("free all") == kSuccess);
    CHECK(guest.finish() == 0);
}

// A build for tests ends a program of which such a thread takes a lock (LockOrder).
TEST_CASE("a thread that can be cancelled at any time can't be while it has a lock") {
    if (!LockOrder::kChecked) {
        skip("this build doesn't look at who takes a lock");
        return;
    }
    const std::string mode = GENERATE("direct", "growth", "prealloc", "deferred", "split");
    CAPTURE(mode);
    const Folder books;
    Words chosen{"CUSLICE_HEADROOM=16MiB", "CUSLICE_DIR=" + books.path()};
    if (mode == "split")
        chosen.insert(chosen.end(), {"CUSLICE_SPLIT=0=1GiB+512MiB", "CUSLICE_ALLOCATOR=growth"});
    else
        chosen.insert(chosen.end(), {"CUSLICE_GROUP=asynchronous", "CUSLICE_GROUP_LIMIT=1400MiB",
                                     "CUSLICE_ALLOCATOR=" + (mode == "deferred" ? "growth" : mode)});
    if (mode == "deferred")
        chosen.push_back("CUSLICE_FREE=deferred");
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), chosen));
    // A refusal looks at who else holds something.
    Words small = chosen;
    if (mode != "split")
        small.push_back("CUSLICE_LIMIT=400MiB");
    Guest other(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), small));
    retain_device(other);
    REQUIRE(other.code("alloc its 1048576") == kSuccess);
    REQUIRE(guest.ask("asynchronous") == "0 0");
    retain_device(guest);
    guest.let_change("free", "pools and caches give back what they keep for later");
    for (const std::string kind : {" managed", " arrays"}) {
        REQUIRE(guest.code("random 1" + kind) == kSuccess);
        REQUIRE(guest.code("steps 300") == kSuccess);
        REQUIRE(guest.code("finish") == kSuccess);
    }
    REQUIRE(guest.ask("exchange 100 33554432 relaxed") == "0 0 0");
    for (std::string symbol : split_words(guest.ask("firsts"))) {
        if (symbol.back() == '+')
            symbol.pop_back();
        CAPTURE(symbol);
        REQUIRE(guest.ask("first " + symbol + " 1048576 2") != "(gone)");
    }
    REQUIRE(guest.ask("fill 16777216") != "(gone)");
    CHECK(guest.ask("forks 3 1") == "0 0");
    CHECK(guest.finish() == 0);
}

TEST_CASE("a thread cancelled past the library costs what it had reserved, and nobody hangs") {
    const Folder books;
    const std::string delays = "delay:cuMemAlloc_v2=300us,delay:cuMemFree_v2=300us";
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings(delays)));
    retain_device(guest);
    const Counted before(guest, books);
    REQUIRE(guest.ask("cancel alloc deferred 40 past") == "0 40");
    const Counted after(guest, books);
    CHECK(after.used >= before.used);
    CHECK(before.free - after.free >= after.used - before.used);
    CHECK(before.free - after.free <= 40 * 65536);
    CHECK(guest.number("storm 8 50 65536") == 0);  // nobody holds a lock that the dead have left
    CHECK(guest.code("alloc all " + bytes(after.free)) == kSuccess);
    CHECK(guest.code("fill 65536") == kOutOfMemory);
    CHECK(books_of(books.path(), guest.pid()).peak <= kGiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("a thread cancelled while it starts CUDA leaves a process that can start it") {
    const std::string type = GENERATE("deferred", "asynchronous");
    if (kSanitizer == "thread" && type == "asynchronous") {
        skip(kNoneUnderTsan);
        return;
    }
    for (int i = 0; i < 20; ++i) {
        const Folder books, folder;
        // Read from a file, so that there are places where a cancellation can strike.
        const std::string file = folder.write("cuslice.toml", "[memory]\nlimit = \"1GiB\"\n");
        Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), {"CUSLICE_CONFIG=" + file}));
        REQUIRE(guest.ask("cancel start " + type + " 1") == "0 1");
        retain_device(guest);
        CHECK(guest.code("fill " + bytes(64 * kMiB)) == kOutOfMemory);
        CHECK(books_of(books.path(), guest.pid()).peak <= kGiB);
    }
}

TEST_CASE("forks while other threads allocate: no child hangs, and the parent's count is right") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings()));
    retain_device(guest);
    const Counted before(guest, books);
    CHECK(guest.ask("forks 200 6") == "0 0");
    const Counted after(guest, books);
    CHECK(after == before);
}

// Each of these calls waits in the driver until so many threads are in there.
std::string meeting(const std::string& function, int threads) {
    return "meet:" + function + "=" + std::to_string(threads);
}

TEST_CASE("threads that allocate from a pool are in the driver at the same time") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings(meeting("cuMemAllocAsync", 8))));
    retain_device(guest);
    for (int round = 0; round < 3; round++)
        REQUIRE(guest.ask("crowd async 8 65536") == "0 0");
    const Counted after(guest, books);
    CHECK(after.free + after.used == kGiB - 16 * kMiB);
}

TEST_CASE("threads that take segments are in the driver at the same time") {
    const Folder books;
    Words words = settings(meeting("cuMemAlloc_v2", 4));
    words.push_back("CUSLICE_ALLOCATOR=growth");
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), words));
    retain_device(guest);
    CHECK(guest.ask("crowd alloc 4 " + bytes(100 * kMiB)) == "0 0");
    CHECK(guest.code("release 0") == kSuccess);
}

// A cache that still grows as its context ends meets the first context that another thread is making.
TEST_CASE("threads begin and end a program's first contexts at once, in each way of caching") {
    if (kSanitizer == "thread")
        return skip("ThreadSanitizer, which doesn't see the locks that the loader has itself");
    const std::string mode = GENERATE("direct", "growth", "prealloc");
    CAPTURE(mode);
    for (int round = 0; round < 20; round++) {
        const Folder books;
        Guest guest(Guest::route("linked"),
                    sliced("2xt4", books.path(), {"CUSLICE_LIMIT=8GiB", "CUSLICE_ALLOCATOR=" + mode}));
        REQUIRE(guest.code("init") == kSuccess);
        REQUIRE(guest.ask("lifetimes 3 3 2") == "0 0");
        REQUIRE(guest.finish() == 0);
    }
}

TEST_CASE("a fork does not wait for a thread that is inside the driver") {
    const std::string how = GENERATE("async", "alloc");
    const std::string function = how == "async" ? "cuMemAllocAsync" : "cuMemAlloc_v2";
    const std::string allocator = GENERATE("direct", "growth");
    CAPTURE(how, allocator);
    const Folder books;
    Words words = settings(meeting(function, 2));
    words.push_back("CUSLICE_ALLOCATOR=" + allocator);
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), words));
    retain_device(guest);
    CHECK(guest.ask("forkinside " + how + " 65536") == "0 0");
}

TEST_CASE("a fork does not wait for a thread that makes the context of virtual GPUs") {
    const Folder books;
    Words words = settings(meeting("cuDevicePrimaryCtxRetain", 2));
    words.push_back("CUSLICE_SPLIT=0=2");
    Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), words));
    REQUIRE(guest.code("init") == kSuccess);
    CHECK(guest.ask("forkinside retain 1") == "0 0");
    CHECK(guest.code("release 1") == kSuccess);
}

TEST_CASE("a child forked before CUDA starts has a slice of its own, and so has its parent's next child") {
    const Folder books;
    Guest guest(Guest::route("v2"), sliced("1xlaptop-2g", books.path(), settings()));  // looks up before it forks
    REQUIRE(guest.code("fork") == kSuccess);
    retain_device(guest);
    CHECK(guest.code("fill " + bytes(64 * kMiB)) == kOutOfMemory);
    CHECK(books_of(books.path(), guest.pid()).peak <= kGiB);
    CHECK(guest.finish() == 0);
}

}  // namespace
}  // namespace cuslice::tests
