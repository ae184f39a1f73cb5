// SPDX-License-Identifier: Apache-2.0
// The driver's footprint, as it is charged to the partitions of one GPU.
#include "tests/virtual_gpu/gpu/footprint_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// Three parts of a GPU, of which the last one is as large as the others together.
struct PartsScene : FootprintScene {
    using Share = DriverFootprint::Share;
    Budget small[2], large;
    const Share shares[3] = {{&small[0], Share::kWhole / 4}, {&small[1], Share::kWhole / 2}, {&large}};
    const DriverFootprint::Budgets all{shares};

    void change(uint64_t process) {
        DriverFootprint::Step step = part.before(all);
        machine.listed = true;
        machine.process = machine.all = process;
        part.after(step, {}, all);
    }
    uint64_t used() const { return small[0].used() + small[1].used() + large.used(); }
};

}  // namespace

TEST_CASE("parts of a GPU are charged what the driver takes in proportion, and together all of it") {
    PartsScene scene;
    scene.open();
    scene.change(400 * kMiB);
    CHECK(scene.small[0].used() == 100 * kMiB);
    CHECK(scene.small[1].used() == 100 * kMiB);
    CHECK(scene.large.used() == 200 * kMiB);
    // Where it can't be divided no byte is lost, nor charged twice.
    for (const uint64_t bytes : {400ul * kMiB + 512, 3ul * kMiB + 1536, 513ul, 1ul}) {
        CAPTURE(bytes);
        scene.change(bytes);
        CHECK(scene.used() == Budget::charged(bytes));
        CHECK(scene.part.bytes() == bytes);
    }
    scene.change(0);
    CHECK(scene.used() == 0);
}

TEST_CASE("what comes on top of the limits is charged to nobody, and what the driver takes beyond that to all") {
    PartsScene scene;
    scene.open(kPid, 300 * kMiB);
    scene.change(300 * kMiB);
    CHECK(scene.used() == 0);
    CHECK(scene.part.bytes() == 300 * kMiB);
    CHECK(scene.part.on_top() == 300 * kMiB);
    scene.change(400 * kMiB);
    CHECK(scene.small[0].used() == 25 * kMiB);
    CHECK(scene.large.used() == 50 * kMiB);
    CHECK(scene.part.on_top() == 300 * kMiB);
    scene.change(100 * kMiB);
    CHECK(scene.used() == 0);
    CHECK(scene.part.on_top() == 100 * kMiB);
}

TEST_CASE("allocations are told from what comes on top, with NVML's figure and without") {
    for (const unsigned pid : {kPid, 0u}) {
        CAPTURE(pid);
        FootprintScene scene;
        scene.listable = pid != 0;
        scene.open(pid, 500 * kMiB);
        scene.grow(300 * kMiB, 0, true);
        CHECK(scene.budget.used() == 0);
        scene.allocate(100 * kMiB);
        scene.grow(50 * kMiB);
        CHECK(scene.budget.used() == 100 * kMiB);
        CHECK(scene.part.bytes() == 350 * kMiB);
        scene.allocate(100 * kMiB);
        scene.grow(250 * kMiB);
        CHECK(scene.part.bytes() == 600 * kMiB);
        CHECK(scene.budget.used() == 300 * kMiB);
    }
}

TEST_CASE("what is foreseen for a part's call is charged to all parts, and taken back from all of them") {
    PartsScene scene;
    scene.open();
    scene.change(400 * kMiB);
    {
        DriverFootprint::Step step = scene.part.before(scene.all);
        {
            const LockGuard lock(scene.mutex);
            scene.part.foresee(step, 40 * kMiB);
        }
        CHECK(scene.small[0].used() == 110 * kMiB);
        CHECK(scene.small[1].used() == 110 * kMiB);
        CHECK(scene.large.used() == 220 * kMiB);
    }
    CHECK(scene.small[0].used() == 100 * kMiB);
    CHECK(scene.large.used() == 200 * kMiB);
}

TEST_CASE("memory of one part on its way back to the driver is charged to all parts until it is gone") {
    PartsScene scene;
    scene.open();
    scene.change(400 * kMiB);
    REQUIRE(scene.small[0].reserve(80 * kMiB));
    scene.small[0].commit();
    machine.process = machine.all = 480 * kMiB;
    {
        const LockGuard lock(scene.mutex);
        REQUIRE(scene.part.take_over(80 * kMiB, scene.small[0], scene.all));
    }
    CHECK(scene.used() == 480 * kMiB);
    CHECK(scene.small[0].used() == 120 * kMiB);
    CHECK(scene.large.used() == 240 * kMiB);
    machine.process = machine.all = 400 * kMiB;
    scene.part.refresh({0, 1}, scene.all);
    CHECK(scene.small[0].used() == 100 * kMiB);
    CHECK(scene.used() == 400 * kMiB);
}
