// SPDX-License-Identifier: Apache-2.0
// Memory pools of a made-up driver, which grow as it pleases.
#include "virtual_gpu/gpu/memory_pools.h"

#include <map>
#include <thread>

#include "tests/catch.h"
#include "virtual_gpu/driver/table.h"

using namespace cuslice;

namespace {

constexpr uint64_t kMiB = 1 << 20;

struct MadeUpPool {
    uint64_t kept = 0, used = 0;
};
std::map<CUmemoryPool, MadeUpPool> all;

CUresult CUDAAPI attribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
    if (!all.count(pool))
        return CUDA_ERROR_INVALID_VALUE;
    *static_cast<cuuint64_t*>(value) = which == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? all[pool].used : all[pool].kept;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI trim(CUmemoryPool pool, size_t keep) {
    all[pool].kept = std::max<uint64_t>(keep, all[pool].used);
    return CUDA_SUCCESS;
}

CUdevice asked_device = -1;
CUresult CUDAAPI graph_attribute(CUdevice device, CUgraphMem_attribute which, void* value) {
    asked_device = device;
    const MadeUpPool& graphs = all[MemoryPools::kGraphs];
    *static_cast<cuuint64_t*>(value) = which == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? graphs.used : graphs.kept;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI trim_graphs(CUdevice) { return trim(MemoryPools::kGraphs, 0); }

template <typename F>
void put(Function function, F* implementation) {
    cuslice_driver_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

CUmemoryPool handle(uintptr_t number) { return reinterpret_cast<CUmemoryPool>(number * 16); }

struct Scene {
    Scene() {
        all.clear();
        put(Function::cuMemPoolGetAttribute, attribute);
        put(Function::cuMemPoolTrimTo, trim);
    }
    // Allocates as a hook does; the pool grows by `growth` bytes.
    void allocate(CUmemoryPool pool, uint64_t bytes, uint64_t growth) {
        MemoryPools::Growing growing(pools, pool, bytes);
        REQUIRE(growing.enter());
        REQUIRE(budget.reserve(growing.at_most()));
        all[pool].kept += growth;
        all[pool].used += bytes;
        growing.allocated(growing.at_most(), budget);
        CHECK(budget.settled(budget.snapshot()));
    }
    uint64_t at_most(CUmemoryPool pool, uint64_t bytes) { return MemoryPools::Growing(pools, pool, bytes).at_most(); }
    bool has_spare(CUmemoryPool pool, uint64_t bytes) {
        return MemoryPools::Growing(pools, pool, bytes).enter_on_spare();
    }
    uint64_t kept() const {
        uint64_t sum = 0;
        for (const auto& [pool, state] : all)
            sum += state.kept;
        return sum;
    }

    Budget budget;
    MemoryPools pools;
};

}  // namespace

TEST_CASE("what pools keep is charged, whatever was reserved beforehand") {
    Scene scene;
    scene.allocate(handle(1), kMiB, 2 * kMiB);
    CHECK(scene.budget.used() == 2 * kMiB);
    scene.allocate(handle(2), 300 * kMiB, 320 * kMiB);
    scene.allocate(handle(1), kMiB / 2, 0);
    CHECK(scene.budget.used() == scene.kept());
    CHECK(scene.pools.charged() == scene.kept());

    all[handle(2)].used = 0;
    scene.pools.refresh(scene.budget, false);
    CHECK(scene.budget.used() == 322 * kMiB);
    scene.pools.refresh(scene.budget, true);
    CHECK(scene.budget.used() == scene.kept());
    CHECK(scene.kept() < 2 * kMiB);

    CHECK_FALSE(scene.pools.has_allocations(handle(2)));
    CHECK(scene.pools.has_allocations(handle(1)));
    scene.budget.release(scene.pools.destroyed(handle(1)));  // as if the driver had freed them
    CHECK(scene.pools.destroyed(handle(1)) == 0);
    all.erase(handle(1));
    scene.pools.refresh(scene.budget, false);
    CHECK(scene.budget.used() == 0);
    CHECK_FALSE(scene.pools.any());
}

TEST_CASE("the growth to expect is the most that has been seen of a pool, and a guess before") {
    Scene scene;
    const CUmemoryPool pool = handle(1), other = handle(2);
    const uint64_t guess = scene.at_most(pool, 1);
    CHECK(guess >= 2 * kMiB);
    SECTION("less than the guess") {
        scene.allocate(pool, kMiB, 2 * kMiB);
        CHECK(scene.at_most(pool, 1) == 2 * kMiB);
        CHECK(scene.at_most(pool, 3 * kMiB) == 4 * kMiB);
    }
    SECTION("more than the guess") {
        scene.allocate(pool, kMiB, 128 * kMiB);
        CHECK(scene.at_most(pool, 1) >= 128 * kMiB);
        CHECK(scene.at_most(pool, 200 * kMiB) >= 256 * kMiB);
    }
    SECTION("by exactly what was asked, which says little") {
        scene.allocate(pool, 320 * kMiB, 320 * kMiB);
        CHECK(scene.at_most(pool, 1) == guess);
    }
    SECTION("not at all, which says nothing") {
        all[pool].kept = 64 * kMiB;
        scene.pools.created(pool);
        scene.pools.refresh(scene.budget, false);
        scene.allocate(pool, kMiB, 0);
        CHECK(scene.at_most(pool, 1) == guess);
    }
    CHECK(scene.at_most(other, 1) == guess);
    CHECK(scene.at_most(pool, ~0ull) >= 1ull << 46);  // saturates, and is refused
}

TEST_CASE("a pool has spare what it keeps and nobody uses") {
    Scene scene;
    all[handle(1)] = {64 * kMiB, 60 * kMiB};
    CHECK(scene.has_spare(handle(1), 4 * kMiB));
    CHECK_FALSE(scene.has_spare(handle(1), 4 * kMiB + 1));
    CHECK_FALSE(scene.has_spare(handle(9), 0));  // the driver knows of no such pool
}

TEST_CASE("what a device keeps for its graphs is charged as a pool is, and trimmed by its own function") {
    Scene scene;
    put(Function::cuDeviceGetGraphMemAttribute, graph_attribute);
    put(Function::cuDeviceGraphMemTrim, trim_graphs);
    scene.pools.open(3);
    scene.allocate(MemoryPools::kGraphs, 40 * kMiB, 64 * kMiB);
    CHECK(asked_device == 3);
    CHECK(scene.budget.used() == 64 * kMiB);
    all[MemoryPools::kGraphs].used = 0;
    CHECK(scene.has_spare(MemoryPools::kGraphs, 64 * kMiB));
    scene.pools.refresh(scene.budget, true);
    CHECK(scene.budget.used() == 0);
}

TEST_CASE("allocations are in the driver at the same time, and the total is never below what the pool has taken") {
    Scene scene;
    const CUmemoryPool pool = handle(1);
    MemoryPools::Growing first(scene.pools, pool, kMiB), second(scene.pools, pool, kMiB);
    const uint64_t each = first.at_most();
    REQUIRE(first.enter());
    REQUIRE(second.enter());
    REQUIRE(scene.budget.reserve(each));
    REQUIRE(scene.budget.reserve(each));
    all[pool] = {4 * kMiB, 2 * kMiB};  // both have grown it
    first.allocated(each, scene.budget);
    CHECK(scene.budget.used() == 4 * kMiB + each);
    all[pool] = {6 * kMiB, 3 * kMiB};
    second.allocated(each, scene.budget);
    CHECK(scene.budget.used() == 6 * kMiB);
    CHECK(scene.budget.settled(scene.budget.snapshot()));
    // Growth by two allocations at once gives no more than an upper bound for each.
    CHECK(scene.at_most(pool, 1) <= each);
}

TEST_CASE("what one pool allocation relies on is nobody else's") {
    Scene scene;
    const CUmemoryPool pool = handle(1);
    scene.allocate(pool, kMiB, 32 * kMiB);  // 31 are to spare
    MemoryPools::Growing large(scene.pools, pool, 20 * kMiB), small(scene.pools, pool, 4 * kMiB);
    small.leave();
    SECTION("those who come later keep out, or rely on what is left") {
        REQUIRE(large.enter_on_spare());
        CHECK_FALSE(small.enter());
        CHECK_FALSE(scene.has_spare(pool, 12 * kMiB));
        CHECK(small.enter_on_spare());
        scene.pools.refresh(scene.budget, true);
        CHECK(scene.kept() == 32 * kMiB);  // nor is it given back to the driver
        small.leave();
        CHECK_FALSE(small.enter());
        large.leave();
        CHECK(small.enter());
    }
    SECTION("those who are inside already may take of it, too") {
        REQUIRE(small.enter());
        large.leave();
        MemoryPools::Growing rest(scene.pools, pool, 28 * kMiB);
        CHECK_FALSE(rest.enter_on_spare());
        small.leave();
        CHECK(rest.enter_on_spare());
    }
}

TEST_CASE("a reading of a pool that began before another one is not charged after it") {
    static Scene* scene = nullptr;
    static CUmemoryPool pool = handle(1);
    Scene here;
    scene = &here;
    // While this thread looks at the pool, it grows for another one, which is done first.
    static bool nested = false;
    nested = false;
    put(
        Function::cuMemPoolGetAttribute, +[](CUmemoryPool which, CUmemPool_attribute of, void* value) {
            const CUresult result = attribute(which, of, value);
            if (!nested) {
                nested = true;
                scene->allocate(pool, kMiB, 64 * kMiB);
            }
            return result;
        });
    here.pools.created(pool);
    here.pools.refresh(here.budget, false);
    CHECK(here.budget.used() == 64 * kMiB);
}

TEST_CASE("who waits for growths under way waits for those of now") {
    Scene scene;
    scene.pools.await_growth();  // none
    MemoryPools::Growing growing(scene.pools, handle(1), kMiB);
    REQUIRE(growing.enter());
    std::thread waiting([&] { scene.pools.await_growth(); });
    growing.leave();
    waiting.join();
    // In a forked child nobody is inside.
    MemoryPools::Growing left(scene.pools, handle(1), kMiB), later(scene.pools, handle(1), kMiB);
    all[handle(1)] = {8 * kMiB, 0};
    later.leave();
    REQUIRE(left.enter_on_spare());
    CHECK_FALSE(later.enter());
    scene.pools.forget();
    CHECK(later.enter());
}
