// SPDX-License-Identifier: Apache-2.0
// The cache of one context: what its segments are charged and give back, after refusals too, and what a free waits for.
#include "virtual_gpu/cache/context_cache.h"

#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/virtual_gpu/cache/caches_scene.h"

using namespace cuslice;
using namespace cuslice::tests;
using Scene = CachesScene;

namespace {

/// While it lives, no allocation can be recorded for which there is no memory: near `address`, multiples of 2 MiB have
/// records already, and what is for those that don't fit is full.
struct FullTable {
    explicit FullTable(uint64_t address) {
        constexpr uint64_t kStep = 2 << 20, kMore = 1024, kEach = 200;
        const NoMemory none;
        for (uint64_t i = 0; i < kMore * kEach; i++)
            gpu_state().allocations.insert({address + i % kMore * kStep, AllocationTable::kUnit, kNobody, 0, 0});
    }
    ~FullTable() {
        gpu_state().allocations.erase_context(
            kNobody, [](const Allocation&, void*) {}, nullptr);
    }
    FullTable(const FullTable&) = delete;
    FullTable& operator=(const FullTable&) = delete;

  private:
    static constexpr uint16_t kNobody = 0xffff;
};

}  // namespace

TEST_CASE("a segment that the driver refuses is not charged, and the refusal is the driver's") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    SECTION("it has none") {
        scene.driver.room = 0;
        CHECK(allocator.allocate(kMiB, &scene.denied) == 0);
        CHECK(scene.denied.by == AllocationError::By::driver);
        CHECK(scene.denied.error == CUDA_ERROR_OUT_OF_MEMORY);
    }
    SECTION("it fails") {
        scene.driver.say["cuMemAlloc"] = CUDA_ERROR_LAUNCH_FAILED;
        CHECK(allocator.allocate(kMiB, &scene.denied) == 0);
        CHECK(scene.denied.by == AllocationError::By::failure);
        CHECK(scene.denied.error == CUDA_ERROR_LAUNCH_FAILED);
    }
    scene.check_nothing();
    scene.driver.room = kGiB;
    scene.driver.say.clear();
    scene.take(allocator, kMiB);
    CHECK(scene.gpu.budget().used() == allocator.reserved());
}

TEST_CASE("a segment beyond the limit is refused before the driver is asked, and not charged") {
    Scene scene;
    CHECK(scene.of(scene.one).allocate(2 * kGiB, &scene.denied) == 0);
    CHECK(scene.denied.by == AllocationError::By::limit);
    CHECK(scene.denied.over_limit.limit == kGiB);
    CHECK(scene.driver.calls_of("cuMemAlloc") == 0);
    scene.check_nothing();
}

TEST_CASE("a segment that can't be recorded goes back to the driver, and is not charged") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    scene.take(allocator, kMiB);  // the allocator has memory for more
    const uint64_t used = scene.gpu.budget().used();
    {
        const FullTable full(scene.driver.memory.begin()->first);
        const NoMemory none;
        CHECK(allocator.allocate(100 * kMiB, &scene.denied) == 0);
    }
    CHECK(scene.denied.by == AllocationError::By::host);
    CHECK(scene.driver.calls_of("cuMemFree") == 1);
    CHECK(scene.driver.memory.size() == 1);
    CHECK(scene.gpu.budget().used() == used);
    CHECK(scene.gpu.budget().settled(scene.gpu.budget().snapshot()));
    CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{context(1)});
    scene.take(allocator, 100 * kMiB);
}

TEST_CASE("a segment that the allocator has no memory to cut goes back to the driver, and is not charged") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    {
        const NoMemory none;
        CHECK(allocator.allocate(100 * kMiB, &scene.denied) == 0);
    }
    CHECK(scene.denied.by == AllocationError::By::host);
    scene.check_nothing();
    scene.take(allocator, 100 * kMiB);
}

TEST_CASE("a segment of a context that has ended unseen is refused, and not charged") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.other);
    scene.driver.end(context(2), false);
    CHECK(allocator.allocate(kMiB, &scene.denied) == 0);
    CHECK(scene.denied.by == AllocationError::By::failure);
    CHECK(scene.driver.calls_of("cuMemAlloc") == 0);
    scene.check_nothing();
}

TEST_CASE("a segment that the driver doesn't take back stays charged, and goes back later") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    CHECK(scene.free(scene.take(allocator, 100 * kMiB)) == ContextAllocator::Freed::done);
    const uint64_t held = scene.gpu.budget().used();
    scene.driver.say["cuMemFree"] = CUDA_ERROR_UNKNOWN;
    CHECK(scene.caches.trim(scene.gpu, kGiB) == 0);
    CHECK(scene.gpu.budget().used() == held);
    CHECK(scene.caches.unused(scene.gpu) == held);
    CHECK(allocator.reserved() == held);
    scene.driver.say.clear();
    CHECK(scene.caches.trim(scene.gpu, kGiB) == held);
    CHECK(scene.caches.unused(scene.gpu) == 0);
    scene.check_nothing();
}

TEST_CASE("a block's end waits for its context's work, and in no context it is refused and the block is there") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    const uint64_t address = scene.take(allocator, 100 * kMiB);
    const uint64_t used = allocator.statistics().allocated.current;
    MadeUpDriver::stack().clear();
    CHECK(scene.free(address) == ContextAllocator::Freed::failed);
    CHECK(scene.error == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(ContextAllocator::find(scene.caches.map(), address).address == address);
    CHECK(allocator.statistics().allocated.current == used);
    MadeUpDriver::stack() = {context(1)};
    scene.driver.say["cuCtxSynchronize"] = CUDA_ERROR_LAUNCH_FAILED;
    CHECK(scene.free(address) == ContextAllocator::Freed::failed);
    CHECK(scene.error == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(ContextAllocator::find(scene.caches.map(), address).address == address);
    scene.driver.say.clear();
    CHECK(scene.free(address) == ContextAllocator::Freed::done);
    // Both contexts are on one GPU.
    CHECK(std::set<CUcontext>(scene.driver.waited_for.begin(), scene.driver.waited_for.end()) ==
          std::set<CUcontext>{context(1), context(2)});
    CHECK(allocator.statistics().allocated.current == 0);
}

TEST_CASE("a block that is freed while a stream is captured is deferred, and the driver is asked for nothing") {
    Scene scene;
    ContextAllocator& allocator = scene.of(scene.one);
    const uint64_t address = scene.take(allocator, 100 * kMiB);
    scene.driver.contexts_of_streams[stream(1)] = context(1);
    scene.driver.capturing[stream(1)] = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    scene.caches.captures().may_begin(stream(1), CaptureTracker::By::known);
    scene.caches.captures().began(stream(1));
    CHECK(scene.free(address) == ContextAllocator::Freed::done);
    CHECK(scene.driver.waited_for.empty());
    CHECK(scene.driver.events.empty());
    CHECK(scene.caches.trim(scene.gpu, kGiB) == 0);
    scene.driver.capturing.clear();
    scene.caches.captures().ended(stream(1), scene.caches.captures().moment());
    CHECK(scene.caches.trim(scene.gpu, kGiB) > 0);
    scene.check_nothing();
}
