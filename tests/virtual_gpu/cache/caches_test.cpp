// SPDX-License-Identifier: Apache-2.0
// The caches of a process's contexts: which there are, what is held and given back, and what becomes of a cache whose
// context ends.
#include "virtual_gpu/cache/caches.h"

#include <set>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/policy/rounds.h"
#include "tests/virtual_gpu/cache/caches_scene.h"
#include "virtual_gpu/gpu/visit.h"

using namespace cuslice;
using namespace cuslice::tests;
using Scene = CachesScene;

TEST_CASE("without memory for a cache a context has none, and later it has one") {
    Scene scene;
    {
        const NoMemory none;
        CHECK(scene.caches.of(scene.gpu, scene.one) == nullptr);
    }
    unsigned open = 4711;
    scene.caches.statistics(scene.gpu, &open);
    CHECK(open == 0);
    CHECK(scene.caches.of(scene.gpu, scene.one));
}

TEST_CASE("a GPU without a cache has no allocator, and neither has a context that isn't known") {
    const AllocatorMode mode = GENERATE(AllocatorMode::direct, AllocatorMode::growth);
    Scene scene(mode);
    CHECK((scene.caches.of(scene.gpu, scene.one) == nullptr) == (mode == AllocatorMode::direct));
    CHECK(scene.caches.of(scene.gpu, 0) == nullptr);
    CHECK(scene.caches.of(scene.gpu, 4711) == nullptr);
    uint64_t missing = 4711;
    CHECK(scene.caches.prepare(scene.gpu, 0, &missing));
    CHECK(missing == 4711);
}

TEST_CASE("each context has one allocator, whoever asks first") {
    Scene scene;
    constexpr unsigned kThreads = 4;
    std::vector<ContextAllocator*> ones(kThreads), others(kThreads);
    on_threads(kThreads, [&](unsigned t) {
        ones[t] = scene.caches.of(scene.gpu, scene.one);
        others[t] = scene.caches.of(scene.gpu, scene.other);
    });
    CHECK(std::set<ContextAllocator*>(ones.begin(), ones.end()).size() == 1);
    CHECK(std::set<ContextAllocator*>(others.begin(), others.end()).size() == 1);
    CHECK(ones[0] != others[0]);
    unsigned open = 0;
    scene.caches.statistics(scene.gpu, &open);
    CHECK(open == 2);
}

TEST_CASE("growth takes nothing before it is asked, and preallocation the whole slice, less headroom") {
    const AllocatorMode mode = GENERATE(AllocatorMode::growth, AllocatorMode::prealloc);
    Scene scene(mode);
    uint64_t missing = 4711;
    CHECK(scene.caches.prepare(scene.gpu, scene.one, &missing));
    CHECK(missing == 0);
    const uint64_t all = mode == AllocatorMode::prealloc ? kGiB - kHeadroom : 0;
    CHECK(scene.gpu.budget().used() == all);
    CHECK(scene.caches.unused(scene.gpu) == all);
}

TEST_CASE("where the driver has less than the slice, how much is missing is said, and what there is can be had") {
    Scene scene(AllocatorMode::prealloc);
    scene.driver.room = 600 * kMiB;
    uint64_t missing = 0;
    CHECK_FALSE(scene.caches.prepare(scene.gpu, scene.one, &missing));
    CHECK(missing > 0);
    CHECK(missing == scene.gpu.room());
    CHECK(scene.gpu.budget().used() + missing == kGiB - kHeadroom);
    CHECK(scene.gpu.budget().settled(scene.gpu.budget().snapshot()));
    scene.driver.room = 4 * kGiB;
    scene.caches.top_up(scene.gpu);
    CHECK(scene.gpu.room() == 0);
}

TEST_CASE("while a stream is captured nothing is taken for a preallocation that had to give back") {
    Scene scene(AllocatorMode::prealloc);
    scene.driver.room = 0;
    uint64_t missing = 0;
    CHECK_FALSE(scene.caches.prepare(scene.gpu, scene.one, &missing));
    scene.driver.room = 4 * kGiB;
    scene.driver.contexts_of_streams[stream(1)] = context(1);
    scene.driver.capturing[stream(1)] = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    scene.caches.captures().may_begin(stream(1), CaptureTracker::By::known);
    scene.caches.captures().began(stream(1));
    scene.caches.top_up(scene.gpu);
    CHECK(scene.gpu.budget().used() == 0);
    scene.caches.captures().ended(stream(1), scene.caches.captures().moment());
    scene.caches.top_up(scene.gpu);
    CHECK(scene.gpu.budget().used() == kGiB - kHeadroom);
}

TEST_CASE("as much as is asked for is given back, of any context but the one that is left out") {
    Scene scene;
    ContextAllocator &first = scene.of(scene.one), &second = scene.of(scene.other);
    for (ContextAllocator* allocator : {&first, &second})
        scene.free(scene.take(*allocator, 100 * kMiB));
    const uint64_t each = first.reserved();
    CHECK(scene.caches.unused(scene.gpu) == 2 * each);
    const ContextCache* except = nullptr;
    scene.caches.each([&](ContextCache& cache) {
        if (cache.context == context(2))
            except = &cache;
    });
    SECTION("one is enough") {
        CHECK(scene.caches.trim(scene.gpu, 1) == each);
        CHECK(scene.gpu.budget().used() == each);
    }
    SECTION("both") {
        CHECK(scene.caches.trim(scene.gpu, 2 * each) == 2 * each);
        scene.check_nothing();
    }
    SECTION("but one") {
        CHECK(scene.caches.trim(scene.gpu, 2 * each, except) == each);
        CHECK(first.reserved() == 0);
        CHECK(second.reserved() == each);
    }
    SECTION("of another GPU") {
        MadeUpProcess& beside = MadeUpProcess::make();
        beside.physical.open({}, 2 * kGiB);
        beside.gpu.open(1, {}, beside.physical, "beside", slice_of(AllocatorMode::growth));
        CHECK(scene.caches.trim(beside.gpu, kGiB) == 0);
        CHECK(scene.caches.unused(beside.gpu) == 0);
        CHECK(scene.caches.unused(scene.gpu) == 2 * each);
    }
}

TEST_CASE("a context's end closes its cache, and what it has done stays in the statistics") {
    Scene scene;
    ContextAllocator &first = scene.of(scene.one), &second = scene.of(scene.other);
    scene.take(first, 100 * kMiB);
    scene.take(second, 200 * kMiB);
    const Statistics before = scene.caches.statistics(scene.gpu);
    CHECK(before.allocated.current == 300 * kMiB);
    scene.end(context(2));
    CHECK_FALSE(second.is_open());
    unsigned open = 0;
    const Statistics after = scene.caches.statistics(scene.gpu, &open);
    CHECK(open == 1);
    CHECK(after.allocated.current == 100 * kMiB);
    CHECK(after.allocated.allocated == 300 * kMiB);
    CHECK(after.allocated.freed == 200 * kMiB);
    CHECK(after.reserved.current == first.reserved());
    CHECK(after.allocations == 2);
    CHECK(after.allocated.peak == before.allocated.peak);
    CHECK(after.segments_given_back == 1);
    scene.end(context(99));  // that none is of
    CHECK(scene.caches.statistics(scene.gpu).allocations == 2);
}

TEST_CASE("a closed cache becomes another context's, but not while somebody is in it") {
    Scene scene;
    ContextAllocator* const first = scene.caches.of(scene.gpu, scene.one);
    ContextAllocator* meanwhile = nullptr;
    scene.caches.each([&](ContextCache& cache) {
        if (&cache.allocator != first)
            return;
        scene.end(context(1));
        meanwhile = scene.caches.of(scene.gpu, scene.driver.make(context(3)));
    });
    REQUIRE(meanwhile);
    CHECK(meanwhile != first);
    CHECK(scene.caches.of(scene.gpu, scene.driver.make(context(4))) == first);
    CHECK(first->is_open());
}

TEST_CASE("a context's blocks are forgotten with it, and so is what was noted of them") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.other);
    const uint64_t address = scene.take(allocator, kMiB);
    const ContextAllocator::Found block = ContextAllocator::find(scene.caches.map(), address);
    REQUIRE(block.address == address);
    CHECK(scene.caches.context_of(block) == scene.other);
    REQUIRE(scene.caches.exported(block));
    scene.end(context(2));
    CHECK(scene.caches.context_of(block) == 0);
    CHECK(ContextAllocator::find(scene.caches.map(), address).address == 0);
    CHECK(scene.caches.block_attributes().forget(address));
    CHECK(scene.free(address) == ContextAllocator::Freed::not_ours);
}

TEST_CASE("sizes of which a block was exported are better had directly, where there is room beside the cache") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    const uint64_t address = scene.take(allocator, 4096);
    const ContextAllocator::Found block = ContextAllocator::find(scene.caches.map(), address);
    {
        const NoMemory none;
        CHECK_FALSE(scene.caches.exported(block));
    }
    CHECK_FALSE(scene.caches.better_direct(scene.gpu, 4096));
    REQUIRE(scene.caches.exported(block));
    CHECK(scene.caches.better_direct(scene.gpu, 4096));
    CHECK_FALSE(scene.caches.better_direct(scene.gpu, 65536));
    // All that is left is in the cache, and nobody's: it is given back for that.
    std::vector<uint64_t> blocks;
    while (const uint64_t more = allocator.allocate(64 * kMiB, &scene.denied))
        blocks.push_back(more);
    while (const uint64_t more = allocator.allocate(2 * kMiB, &scene.denied))
        blocks.push_back(more);
    CHECK_FALSE(scene.caches.better_direct(scene.gpu, 4096));
    for (const uint64_t one : blocks)
        scene.free(one);
    CHECK(scene.gpu.room() < 4096);
    CHECK(scene.caches.better_direct(scene.gpu, 4096));
    CHECK(scene.gpu.room() >= 4096);
}

TEST_CASE("of a preallocated slice nothing is had directly") {
    Scene scene(AllocatorMode::prealloc);
    ContextAllocator& allocator = scene.of(scene.one);
    const uint64_t address = scene.take(allocator, 4096);
    REQUIRE(scene.caches.exported(ContextAllocator::find(scene.caches.map(), address)));
    CHECK_FALSE(scene.caches.better_direct(scene.gpu, 4096));
}

TEST_CASE("what a thread keeps to itself goes back at its end") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    std::thread([&] {
        MadeUpDriver::stack() = {context(1)};
        AllocationError denied;
        int error = 0;
        for (int i = 0; i < 100; i++) {
            const uint64_t address = allocator.allocate(4096, &denied);
            ContextAllocator::free(scene.caches.map(), address, &error);
        }
    }).join();
    CHECK(allocator.reserved() > 0);
    CHECK(scene.caches.trim(scene.gpu, kGiB) > 0);
    scene.check_nothing();
}

TEST_CASE("contexts that end among threads which look at all caches leave nothing behind") {
    Scene scene;
    std::atomic<bool> over{false};
    std::vector<std::thread> lookers;
    for (int t = 0; t < 3; t++)
        lookers.emplace_back([&] {
            MadeUpDriver::stack() = {context(1)};
            while (!over) {
                scene.caches.statistics(scene.gpu);
                scene.caches.unused(scene.gpu);
                scene.caches.trim(scene.gpu, kMiB);
            }
        });
    for (uintptr_t i = 0; i < 50; i++) {
        const CUcontext ending = context(100 + i);
        ContextAllocator& allocator = scene.of(scene.driver.make(ending));
        scene.take(allocator, kMiB);
        const ContextEnd end(ending);
        scene.end(ending);
    }
    over = true;
    for (std::thread& thread : lookers)
        thread.join();
    unsigned open = 4711;
    const Statistics all = scene.caches.statistics(scene.gpu, &open);
    CHECK(open == 0);
    CHECK(all.allocations == 50);
    CHECK(all.allocated.current == 0);
    CHECK(scene.gpu.budget().used() == 0);
}
