// SPDX-License-Identifier: Apache-2.0
// When a GPU looks at what the driver has taken, and what it then knows.
#include <cstdint>
#include <ctime>

#include "tests/virtual_gpu/gpu/measured_gpu.h"
#include "virtual_gpu/gpu/driver_steps.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// A GPU with a limit of 1 GiB and 16 MiB of headroom, on which a context has begun unseen.
struct Scene : MeasuredMachine {
    Scene() {
        machine.listed = true;
        take(300 * kMiB);
        DriverSteps(*gpu).charge_unseen_context();
    }
    std::unique_ptr<VirtualGpu> gpu = open(0, measured_slice(1024 * kMiB, 16 * kMiB));
};

int64_t coarse_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

TEST_CASE("a context that nobody saw begin is measured when it is met, and charged") {
    Scene scene;
    CHECK(scene.gpu->measured());
    CHECK_FALSE(scene.gpu->physical().measures_steps());
    CHECK(scene.gpu->driver_footprint() == 300 * kMiB);
    CHECK(scene.gpu->budget().used() == 300 * kMiB);
    CHECK(scene.gpu->room() == (1024 - 16 - 300) * kMiB);
}

TEST_CASE("what the driver takes unasked is seen when cached blocks go round, and cached memory makes room for it") {
    Scene scene;
    scene.take(100 * kMiB);
    scene.gpu->poll_cached();
    CHECK(scene.gpu->driver_footprint() == 400 * kMiB);
    CHECK(kept_of_gpus.asked.empty());
    scene.allocate(*scene.gpu, 600 * kMiB);
    kept_of_gpus.kept[0] = 600 * kMiB;
    scene.take(100 * kMiB);
    scene.gpu->poll_cached();
    CHECK(scene.gpu->driver_footprint() == 500 * kMiB);
    CHECK(kept_of_gpus.asked == KeptOfGpus::Asked{{0, 76 * kMiB}});
    CHECK(scene.gpu->within_limit(nullptr));
}

TEST_CASE("far from the limit a look comes at a tick of the clock at most, and near it whenever blocks go round") {
    Scene scene;
    constexpr int kRounds = 10'000;
    int64_t ticks = 1;
    const int before = machine.readings;
    for (int64_t last = coarse_now(), i = 0; i < kRounds; i++) {
        scene.gpu->poll_cached();
        const int64_t now = coarse_now();
        ticks += now != last;
        last = now;
    }
    CHECK(machine.readings - before >= 1);
    CHECK(machine.readings - before <= ticks);

    // Near the limit the driver's own memory is seen while there is still room for it.
    scene.take(10 * kMiB);
    scene.allocate(*scene.gpu, scene.gpu->room() - 15 * kMiB);
    scene.take(5 * kMiB);
    scene.gpu->poll_cached();
    CHECK(scene.gpu->driver_footprint() == 315 * kMiB);
    CHECK(scene.gpu->within_limit(nullptr));
}

TEST_CASE("looks that find nothing become rare, however often cached blocks go round near the limit") {
    Scene scene;
    scene.allocate(*scene.gpu, scene.gpu->room() - kMiB);
    constexpr int kRounds = 200;
    const auto looks = [&] {
        const int before = machine.readings;
        for (int i = 0; i < kRounds; i++)
            scene.gpu->poll_cached();
        return machine.readings - before;
    };
    // So many at once; afterwards one in a tenth of a second.
    const int first = looks();
    CHECK(first >= 15);  // and one before the allocation
    CHECK(first < kRounds / 2);
    CHECK(looks() < kRounds / 2);
}

TEST_CASE("a GPU of which nothing was measured yet isn't looked at") {
    MeasuredMachine scene;
    const auto unseen = scene.open(0, measured_slice(1024 * kMiB, 16 * kMiB));
    unseen->poll_cached();
    unseen->refresh_if_stale();
    CHECK(machine.readings == 0);
    CHECK(unseen->budget().used() == 0);
}

TEST_CASE("memory on its way back is seen to be gone before a figure is shown") {
    Scene scene;
    machine.process -= 50 * kMiB;
    const int before = machine.readings;
    scene.gpu->refresh_if_stale();
    CHECK(machine.readings == before);
    scene.gpu->driver_gave_back();
    scene.gpu->refresh_if_stale();
    CHECK(machine.readings == before + 1);
    CHECK(scene.gpu->driver_footprint() == 250 * kMiB);
    scene.gpu->refresh_if_stale();
    CHECK(machine.readings == before + 1);
    // As long as something is in flight, which can't be compared, it is looked for again.
    machine.process -= 50 * kMiB;
    scene.gpu->driver_gave_back();
    REQUIRE(scene.gpu->budget().reserve(kMiB));
    scene.gpu->refresh_if_stale();
    CHECK(scene.gpu->driver_footprint() == 250 * kMiB);
    scene.gpu->budget().roll_back(kMiB);
    scene.gpu->refresh_if_stale();
    CHECK(scene.gpu->driver_footprint() == 200 * kMiB);
}
