// SPDX-License-Identifier: Apache-2.0
// A host that has no memory to write anything down in: what was taken goes back, what can't be noted is not counted as
// if it could be had, and nobody asks again and again.
#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace {

thread_local bool gives_none = false;
thread_local uint64_t given = 0;  // bytes, to this thread

/// While it lives, this thread gets no memory for tables.
struct NoTables {
    NoTables() { gives_none = true; }
    ~NoTables() { gives_none = false; }
    NoTables(const NoTables&) = delete;
    NoTables& operator=(const NoTables&) = delete;
};

}  // namespace

// This program is linked with --wrap for cuslice::take_table_memory(size_t).
extern "C" {
void* __real__ZN7cuslice17take_table_memoryEm(size_t bytes);
void* __wrap__ZN7cuslice17take_table_memoryEm(size_t bytes);

void* __wrap__ZN7cuslice17take_table_memoryEm(size_t bytes) {
    if (gives_none)
        return nullptr;
    given += bytes;
    return __real__ZN7cuslice17take_table_memoryEm(bytes);
}
}

namespace cuslice {
namespace {

using Freed = TestAllocator::Freed;

TEST_CASE("without host memory for a segment it goes back, the driver is not asked again, and later all is well") {
    const uint64_t size = GENERATE(4 * kKiB, 3 * kMiB, 100 * kMiB);
    const bool preallocates = GENERATE(false, true);
    CAPTURE(size, preallocates);
    Allocator a({TestAllocator::Reuse::strict, preallocates}, kGiB);
    {
        const NoTables none;
        CHECK(a.allocate(size) == 0);
        CHECK(a.denied.by == AllocationError::By::host);
        CHECK(a.memory.asked_for == 1);
        CHECK(a.memory.held == 0);
        CHECK(a.allocator.statistics().segments == 0);
        CHECK(a.allocator.statistics().reserved.current == 0);
        CHECK(a.allocator.unused() == 0);
    }
    a.denied = {};
    const uint64_t block = a.allocate(size);
    REQUIRE(block);
    CHECK(a.free(block) == Freed::done);
    CHECK(a.allocator.unused() == a.memory.held);
}

TEST_CASE("where much is held a smaller segment isn't asked for either when there is no memory to map one in") {
    Allocator a;
    for (int i = 0; i < 100; i++)
        REQUIRE(a.allocate(6 * kMiB));
    while (a.allocator.statistics().largest_free >= 6 * kMiB)
        REQUIRE(a.allocate(6 * kMiB));
    const uint64_t held = a.memory.held, next = a.memory.next;
    const unsigned asked = a.memory.asked_for;
    a.memory.next = 1ull << 48;  // where the map has no table yet
    {
        const NoTables none;
        CHECK(a.allocate(6 * kMiB) == 0);
        CHECK(a.denied.by == AllocationError::By::host);
    }
    CHECK(a.memory.asked_for == asked + 1);
    CHECK(a.memory.held == held);
    CHECK(a.allocator.statistics().reserved.current == held);
    a.memory.next = next;
    CHECK(a.allocate(6 * kMiB));
}

TEST_CASE("a block that there is no memory to defer is nobody's again, and not counted as one that could be had") {
    Allocator a(kDeferred);
    const uint64_t block = a.allocate(100 * kMiB), held = a.memory.held;
    REQUIRE(block);
    a.memory.instant = false;
    {
        const NoTables none;
        CHECK(a.free(block) == Freed::done);
    }
    CHECK(a.memory.fences == 1);
    CHECK(a.memory.pending.empty());
    CHECK(a.memory.held == held);
    CHECK(a.allocator.unused() == 0);
    CHECK(a.allocator.statistics().allocated.current == 0);
    CHECK(a.free(block) != Freed::done);
    CHECK(a.allocate(100 * kMiB) != block);
    // With nothing else in it, its segment goes back.
    CHECK(a.allocator.trim(~0ull) == held);
}

TEST_CASE("what an allocator takes of the host's memory is what it says that it takes") {
    Allocator a(kDeferred);
    CHECK(a.allocator.statistics().own_memory == 0);
    const uint64_t before = given;
    REQUIRE(a.free(a.allocate(100 * kMiB)) == Freed::done);
    const uint64_t large = a.allocator.statistics().own_memory;
    CHECK(large > 0);
    REQUIRE(a.free(a.allocate(100)) == Freed::done);
    CHECK(a.allocator.statistics().own_memory > large);
    for (int i = 0; i < 3000; i++)
        REQUIRE(a.allocate(3 * kKiB));
    CHECK(a.allocator.statistics().own_memory <= given - before);
    // The rest is the map's, which all allocators share: how many tables it has depends on where the addresses lie.
    CHECK(given - before - a.allocator.statistics().own_memory < 4 * kMiB);
}

}  // namespace
}  // namespace cuslice
