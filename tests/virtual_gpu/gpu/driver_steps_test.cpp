// SPDX-License-Identifier: Apache-2.0
// Calls in which the driver takes memory by itself: what has to have room for it, and what makes room.
#include "virtual_gpu/gpu/driver_steps.h"
#include "tests/virtual_gpu/gpu/measured_gpu.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// A GPU with a limit of 1 GiB, on which NVML lists this process.
struct Alone : MeasuredMachine {
    explicit Alone(AllocatorMode mode = AllocatorMode::growth) : gpu(open(0, measured_slice(1024 * kMiB, 0, mode))) {
        machine.listed = true;
    }
    /// The driver takes so much in a call.
    bool step(int64_t bytes, LimitError* why) {
        DriverFootprint::Step now = DriverSteps(*gpu).before();
        take(bytes);
        return DriverSteps(*gpu).after(now, why);
    }
    bool foresee(uint64_t bytes, LimitError* why) {
        DriverFootprint::Step now = DriverSteps(*gpu).before();
        return DriverSteps(*gpu).reserve_lower_bound(now, bytes, why);
    }
    uint64_t used() { return gpu->budget().used(); }
    std::unique_ptr<VirtualGpu> gpu;
};

/// Two parts of 1 GiB each of a GPU, whose own limit is `whole`.
struct Parts : MeasuredMachine {
    explicit Parts(uint64_t whole = 2048 * kMiB) {
        physical->split(measured_slice(whole, 0), 2048 * kMiB, false);
        one = open(0, measured_slice(1024 * kMiB, 0));
        other = open(1, measured_slice(1024 * kMiB, 0));
        machine.listed = true;
        DriverSteps(*one).charge_unseen_context();
    }
    bool foresee(uint64_t bytes, LimitError* why) {
        DriverFootprint::Step now = DriverSteps(*one).before();
        return DriverSteps(*one).reserve_lower_bound(now, bytes, why);
    }
    std::unique_ptr<VirtualGpu> one, other;
};

}  // namespace

TEST_CASE("what the driver takes in a call is charged, up to the limit and no further") {
    Alone scene;
    LimitError why;
    CHECK(scene.step(300 * kMiB, &why));
    CHECK(scene.used() == 300 * kMiB);
    scene.allocate(*scene.gpu, 700 * kMiB);
    CHECK(scene.step(24 * kMiB, &why));
    CHECK(scene.used() == 1024 * kMiB);
    REQUIRE_FALSE(scene.step(100 * kMiB, &why));
    CHECK(why.of == LimitOf::process);
    CHECK(why.requested == 100 * kMiB);
    CHECK(why.used == 1024 * kMiB);
    CHECK(why.limit == 1024 * kMiB);
    CHECK_FALSE(scene.step(0, nullptr));
    // The caller has undone it.
    CHECK(scene.step(-100 * int64_t{kMiB}, &why));
    CHECK(scene.used() == 1024 * kMiB);
    CHECK_FALSE(scene.step(kMiB, &why));
    CHECK(why.requested == kMiB);
    // It is still there, and nothing more.
    CHECK_FALSE(scene.step(0, &why));
    CHECK(why.requested == 0);
}

TEST_CASE("what is cached makes room for what the driver takes, and is taken again where there is room") {
    Alone scene;
    REQUIRE(scene.step(300 * kMiB, nullptr));
    CHECK(kept_of_gpus.topped_up == std::vector<int>{0});
    scene.allocate(*scene.gpu, 700 * kMiB);
    kept_of_gpus.kept[0] = 80 * kMiB;
    LimitError why;
    CHECK(scene.step(100 * kMiB, &why));
    CHECK(kept_of_gpus.asked == KeptOfGpus::Asked{{0, 76 * kMiB}});
    CHECK(kept_of_gpus.topped_up.size() == 2);
    // With less than is missing in the cache it is refused, and nothing is topped up.
    kept_of_gpus.asked.clear();
    CHECK_FALSE(scene.step(100 * kMiB, &why));
    CHECK(kept_of_gpus.asked.front() == std::pair<int, uint64_t>{0, 100 * kMiB});
    CHECK(kept_of_gpus.topped_up.size() == 2);

    Alone direct(AllocatorMode::direct);
    REQUIRE(direct.step(300 * kMiB, nullptr));
    direct.allocate(*direct.gpu, 700 * kMiB);
    kept_of_gpus.kept[0] = 80 * kMiB;
    CHECK_FALSE(direct.step(100 * kMiB, &why));
    CHECK(kept_of_gpus.asked.empty());
    CHECK(kept_of_gpus.topped_up.empty());
}

TEST_CASE("what is foreseen for a call is charged while it lasts, and refused before it where it doesn't fit") {
    Alone scene(AllocatorMode::direct);
    REQUIRE(scene.step(300 * kMiB, nullptr));
    scene.allocate(*scene.gpu, 700 * kMiB);
    LimitError why;
    {
        DriverFootprint::Step step = DriverSteps(*scene.gpu).before();
        CHECK(DriverSteps(*scene.gpu).reserve_lower_bound(step, 24 * kMiB, &why));
        CHECK(scene.used() == 1024 * kMiB);
        CHECK(scene.gpu->driver_footprint() == 300 * kMiB);
        CHECK_FALSE(scene.gpu->reserve_at_once(1));
    }
    CHECK(scene.used() == 1000 * kMiB);
    REQUIRE_FALSE(scene.foresee(24 * kMiB + 512, &why));
    CHECK(why.of == LimitOf::process);
    CHECK(why.requested == 24 * kMiB + 512);
    CHECK(why.used == 1000 * kMiB);
    CHECK(why.limit == 1024 * kMiB);
    CHECK_FALSE(scene.foresee(24 * kMiB + 512, nullptr));
    CHECK(scene.used() == 1000 * kMiB);
}

TEST_CASE("what is foreseen for a part's call has to fit into the other part too, which is named") {
    Parts scene;
    scene.allocate(*scene.other, 1000 * kMiB);
    LimitError why;
    CHECK(scene.foresee(48 * kMiB, &why));
    REQUIRE_FALSE(scene.foresee(64 * kMiB, &why));
    CHECK(why.of == LimitOf::other_part);
    CHECK(why.part == 1);
    CHECK(why.requested == 32 * kMiB);
    CHECK(why.used == 1000 * kMiB);
    CHECK(why.limit == 1024 * kMiB);
    CHECK(scene.one->budget().used() == 0);
    CHECK(scene.other->budget().used() == 1000 * kMiB);
    // The other one's cache makes room for it, and not this one's.
    kept_of_gpus.asked.clear();
    kept_of_gpus.kept = {{0, 500 * kMiB}, {1, 500 * kMiB}};
    CHECK(scene.foresee(64 * kMiB, &why));
    CHECK(kept_of_gpus.asked == KeptOfGpus::Asked{{1, 8 * kMiB}});
    // Its own limit is not another one's.
    scene.allocate(*scene.one, 1024 * kMiB);
    kept_of_gpus.kept.clear();
    REQUIRE_FALSE(scene.foresee(4 * kMiB, &why));
    CHECK(why.of == LimitOf::process);
    CHECK(why.requested == 2 * kMiB);
    CHECK(why.used == 1024 * kMiB);
}

TEST_CASE("what the driver takes for all parts has to fit into the whole GPU's limit") {
    Parts scene(1200 * kMiB);
    scene.allocate(*scene.one, 600 * kMiB);
    scene.allocate(*scene.other, 580 * kMiB);
    LimitError why;
    CHECK(scene.foresee(20 * kMiB, &why));
    REQUIRE_FALSE(scene.foresee(20 * kMiB + 1024, &why));
    CHECK(why.of == LimitOf::whole_gpu);
    CHECK(why.requested == 20 * kMiB + 1024);
    CHECK(why.used == 1180 * kMiB);
    CHECK(why.limit == 1200 * kMiB);
    CHECK(scene.physical->charged() == 1180 * kMiB);
}

TEST_CASE("with the last context goes what others have blurred, unless another one is just being made") {
    MeasuredMachine scene;
    machine.listed = false;
    const auto gpu = scene.open(0, measured_slice(1024 * kMiB, 0));
    DriverFootprint::Step begins = DriverSteps(*gpu).before(true);
    scene.take(300 * kMiB);
    CHECK(DriverSteps(*gpu).after(begins, nullptr));
    REQUIRE(gpu->budget().used() == 300 * kMiB);
    {
        const MakingContext another;
        DriverFootprint::Step ends = DriverSteps(*gpu).before();
        scene.take(-200 * int64_t{kMiB});  // and others took 100 MiB
        DriverSteps(*gpu).after_context_end(ends);
        CHECK(gpu->budget().used() == 100 * kMiB);
    }
    DriverFootprint::Step ends = DriverSteps(*gpu).before();
    DriverSteps(*gpu).after_context_end(ends);
    CHECK(gpu->budget().used() == 0);
    CHECK(gpu->driver_footprint() == 0);
}
