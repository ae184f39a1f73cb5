// SPDX-License-Identifier: Apache-2.0
// Calls that the program leaves by siglongjmp, as cysignals and timeouts of interpreters do: the limit stays, and the
// next call finds no lock held.
#include <csignal>

#include "tests/preload/machine.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

/// Takes all that is to be had in blocks of 64 MiB. How much that was.
uint64_t fill(Guest& guest) {
    uint64_t blocks = 0;
    while (guest.code("alloc f" + bytes(blocks) + " " + bytes(64 * kMiB)) == kSuccess)
        blocks++;
    return blocks * 64 * kMiB;
}

/// Each call of the function sleeps, so that it can be left.
std::string slow(const std::string& function) { return "CUSLICE_FAKE_INJECT=delay:" + function + "=1ms"; }

TEST_CASE("a thread that leaves an allocation keeps its limit, and finds no lock held") {
    const std::string mode = GENERATE("direct", "growth");
    const bool managed = GENERATE(true, false);
    CAPTURE(mode, managed);
    Scene scene("1xt4", {"CUSLICE_ALLOCATOR=" + mode, slow(managed ? "cuMemAllocManaged" : "cuMemAlloc_v2")});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    for (int i = 0; i < 2; i++)
        CHECK(scene.guest.ask(std::string(managed ? "leave managed " : "leave alloc ") + bytes(2 * kMiB)) == "0 1");
    CHECK(scene.guest.number("info", 2) == kGiB);
    CHECK(fill(scene.guest) >= kGiB - 260 * kMiB);
    CHECK(scene.held().peak <= kGiB);
    // Nor does another thread.
    CHECK(scene.guest.code("free f0") == kSuccess);
    CHECK(scene.guest.code("thread alloc g " + bytes(2 * kMiB)) == kSuccess);
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("a thread that leaves a free, or an allocation of a pool, keeps its limit") {
    const std::string what = GENERATE("free", "async");
    CAPTURE(what);
    Scene scene("1xt4", {slow(what == "free" ? "cuMemFree_v2" : "cuMemAllocAsync")});
    scene.guest.let_change("free", "what the left call has done, and a hidden module, are seen before a refusal");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc a " + bytes(2 * kMiB)) == kSuccess);
    CHECK(scene.guest.ask(what == "free" ? "leave free a" : "leave async " + bytes(2 * kMiB)) == "0 1");
    CHECK(scene.guest.code("alloc b " + bytes(2 * kMiB) + " async") == kSuccess);
    CHECK(scene.guest.code("freeasync b") == kSuccess);
    CHECK(fill(scene.guest) >= kGiB - 260 * kMiB);
    CHECK(scene.held().peak <= kGiB);
    // Memory that the driver takes by itself is still told apart from memory that is counted.
    CHECK(scene.guest.code("free f0") == kSuccess);
    const uint64_t free = scene.free();
    REQUIRE(scene.guest.code("hiddenload m " + bytes(8 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("alloc huge " + bytes(kGiB)) == kOutOfMemory);
    CHECK(scene.free() <= free - 8 * kMiB);
}

// In a call of CUDA's that the program leaves, NVML is asked on cuslice's own account: without it the jump would have
// left no lock there.
TEST_CASE("a thread that leaves a call leaves no lock of NVML's behind") {
    const std::string mode = GENERATE("direct", "growth"), what = GENERATE("retain", "alloc");
    const int signal = GENERATE(SIGUSR1, SIGALRM, SIGINT);
    CAPTURE(mode, what, signal);
    Scene scene("1xt4", {"CUSLICE_ALLOCATOR=" + mode});
    if (what == "alloc")
        REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const std::string argument = what == "retain" ? "0" : bytes(200 * kMiB);
    REQUIRE(scene.guest.ask("leavenvml " + what + " " + argument + " " + bytes(signal)) == "0 1 0");
    if (what == "retain")
        REQUIRE(scene.guest.code("retain 0") == kSuccess);
    CHECK(fill(scene.guest) > 0);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.guest.code("free f0") == kSuccess);
    CHECK(scene.guest.code("thread alloc g " + bytes(2 * kMiB)) == kSuccess);
}

TEST_CASE("a thread that leaves a context's beginning or end finds no lock held") {
    const bool split = GENERATE(true, false);
    const std::string what = GENERATE("create", "destroy");
    CAPTURE(split, what);
    const std::string of_split = what == "create" ? "cuDevicePrimaryCtxRetain" : "cuDevicePrimaryCtxRelease_v2";
    const std::string function = split ? of_split : what == "create" ? "cuCtxCreate_v2" : "cuCtxDestroy_v2";
    const Folder books;
    Words settings{slow(function), "CUSLICE_HEADROOM=16MiB",
                   split ? "CUSLICE_SPLIT=0=1GiB+1GiB" : "CUSLICE_LIMIT=1GiB"};
    if (!split)
        settings.push_back("CUSLICE_ALLOCATOR=growth");
    Guest guest(Guest::route("linked"), sliced("1xt4", books.path(), settings));
    REQUIRE(guest.code("init") == kSuccess);
    if (what == "destroy") {
        REQUIRE(guest.code("create c 0") == kSuccess);
        CHECK(guest.ask("leave destroy c") == "0 1");
    } else {
        CHECK(guest.ask("leave create 0") == "0 1");
    }
    CHECK(guest.code("create own 0") == kSuccess);
    CHECK(guest.code("alloc a " + bytes(2 * kMiB)) == kSuccess);
    CHECK(guest.code("free a") == kSuccess);
    CHECK(fill(guest) > 0);
    CHECK(all_books_of(books.path(), guest.pid()).peak <= (split ? 2 : 1) * kGiB);
    CHECK(guest.code("thread create other 0") != -1);
    CHECK(guest.code("destroy own") == kSuccess);
}

}  // namespace
}  // namespace cuslice::tests
