// SPDX-License-Identifier: Apache-2.0
// Memory that the program has given back, and the driver or another process may still hold.
#include "virtual_gpu/gpu/late_release.h"

#include "tests/virtual_gpu/gpu/measured_gpu.h"
#include "virtual_gpu/gpu/driver_steps.h"
#include "virtual_gpu/gpu/memory_view.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kContext = 300 * kMiB, kPiece = 64 * kMiB;

/// A GPU with a limit of 1 GiB and a context, which NVML has a figure of.
struct Scene : MeasuredMachine {
    Scene() {
        machine.listed = true;
        take(static_cast<int64_t>(kContext));
        DriverSteps(*gpu).charge_unseen_context();
    }
    uint64_t free() { return memory_view(*gpu, 16384 * kMiB).free; }
    std::unique_ptr<VirtualGpu> gpu = open(0, measured_slice(1024 * kMiB, 16 * kMiB));
};

}  // namespace

TEST_CASE("what another process may still hold stays charged, and what the driver will have doesn't") {
    // No figure of the driver's is read here, so nothing would ever say that it is gone.
    MeasuredMachine scene;
    const auto gpu = scene.open(0, measured_slice(1024 * kMiB, 16 * kMiB));
    scene.allocate(*gpu, 100 * kMiB);
    release_shared(*gpu, 60 * kMiB);
    CHECK(gpu->budget().used() == 100 * kMiB);
    release_later(*gpu, 40 * kMiB);
    CHECK(gpu->budget().used() == 60 * kMiB);
}

TEST_CASE("where the driver's figure can be read, what it hasn't yet stays charged until it has") {
    Scene scene;
    scene.allocate(*scene.gpu, 2 * kPiece);
    const uint64_t free = scene.free();
    release_later(*scene.gpu, kPiece);
    release_shared(*scene.gpu, kPiece);
    CHECK(scene.free() == free);
    scene.take(-static_cast<int64_t>(kPiece));
    scene.gpu->driver_gave_back();
    CHECK(scene.free() == free + kPiece);
    scene.take(-static_cast<int64_t>(kPiece));
    scene.gpu->driver_gave_back();
    CHECK(scene.free() == free + 2 * kPiece);
    CHECK(scene.gpu->driver_footprint() == kContext);
}

TEST_CASE("a GPU looks at what others keep before every figure that it shows, and as long as they do") {
    Scene scene;
    const std::unique_ptr<VirtualGpu>& gpu = scene.gpu;
    scene.allocate(*gpu, kPiece);
    const uint64_t free = scene.free();

    const uint64_t before = before_exported_release(*gpu);
    machine.process -= kPiece;
    release_exported(*gpu, kPiece, before);
    after_exported_release(*gpu);
    CHECK(scene.free() == free);
    CHECK(gpu->driver_footprint() == kContext);
    machine.all -= kPiece;
    CHECK(scene.free() == free + kPiece);
    const int readings = machine.readings;
    CHECK(scene.free() == free + kPiece);
    CHECK(machine.readings == readings);
}
