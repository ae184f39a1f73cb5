// When a GPU looks at what the driver has taken, and what it then knows.
#include <unistd.h>

#include <memory>
#include <vector>

#include "tests/catch.h"
#include "tests/virtual_gpu/gpu/made_up_nvml.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

class Reclaimer : public MemoryReclaimer {
  public:
    std::uint64_t trim(VirtualGpu& gpu, std::uint64_t bytes, const ContextCache*) override {
        asked.push_back(bytes);
        const std::uint64_t given = std::min(bytes, kept);
        kept -= given;
        gpu.budget().release(given);
        return given;
    }
    std::uint64_t unused(const VirtualGpu&) const override { return kept; }
    std::uint64_t kept = 0;
    std::vector<std::uint64_t> asked;
};
Reclaimer reclaimer;

nvmlReturn_t own_process(nvmlDevice_t, unsigned* count, nvmlProcessInfo_t* infos) {
    machine.readings++;
    *count = 1;
    infos[0].pid = static_cast<unsigned>(getpid());
    infos[0].usedGpuMemory = machine.process;
    return NVML_SUCCESS;
}

nvmlReturn_t version(char* text, unsigned size) {
    snprintf(text, size, "580.95.05");
    return NVML_SUCCESS;
}

/// A GPU of 16 GiB with a limit of 1 GiB and 16 MiB of headroom, of which NVML says what this process has.
struct Scene {
    Scene() {
        machine = {};
        reclaimer = {};
        put(NvmlFunction::nvmlInit_v2, init);
        put(NvmlFunction::nvmlDeviceGetHandleByUUID, by_uuid);
        put(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3, own_process);
        put(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3, no_processes);
        put(NvmlFunction::nvmlDeviceGetMemoryInfo, memory);
        put(NvmlFunction::nvmlSystemGetDriverVersion, version);
        GpuState& state = gpu_state();
        state.reclaimer = &reclaimer;
        state.start_nvml = [] { return true; };
        state.look_for_ended = [](VirtualGpu&) {};
        physical->open({}, 16384 * kMiB);
        Slice slice;
        slice.limited = slice.own_headroom = true;
        slice.limit = 1024 * kMiB;
        slice.headroom = 16 * kMiB;
        slice.allocator = AllocatorMode::growth;
        gpu->open(0, {}, *physical, "made up", slice);
        machine.process = machine.all = 300 * kMiB;
        gpu->meet_context();
    }
    ~Scene() {
        using enum NvmlFunction;
        for (const NvmlFunction function :
             {nvmlInit_v2, nvmlDeviceGetHandleByUUID, nvmlDeviceGetComputeRunningProcesses_v3,
              nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetMemoryInfo, nvmlSystemGetDriverVersion})
            put(function, static_cast<void (*)()>(nullptr));
    }
    std::unique_ptr<PhysicalGpu> physical = std::make_unique<PhysicalGpu>();
    std::unique_ptr<VirtualGpu> gpu = std::make_unique<VirtualGpu>();
};

}  // namespace

TEST_CASE("a context that nobody saw begin is measured when it is met, and charged") {
    Scene scene;
    CHECK(scene.gpu->measured());
    CHECK_FALSE(scene.gpu->measures_steps());
    CHECK(scene.gpu->driver_footprint() == 300 * kMiB);
    CHECK(scene.gpu->budget().used() == 300 * kMiB);
    CHECK(scene.gpu->room() == (1024 - 16 - 300) * kMiB);
}

TEST_CASE("what the driver takes unasked is seen when cached blocks go round, and cached memory makes room for it") {
    Scene scene;
    machine.process += 100 * kMiB;
    scene.gpu->look_at_cached();
    CHECK(scene.gpu->driver_footprint() == 400 * kMiB);
    CHECK(reclaimer.asked.empty());
    REQUIRE(scene.gpu->reserve(600 * kMiB, nullptr));
    scene.gpu->budget().commit();
    reclaimer.kept = 600 * kMiB;
    machine.process += 700 * kMiB;
    scene.gpu->look_at_cached();
    CHECK(scene.gpu->driver_footprint() == 500 * kMiB);
    CHECK(reclaimer.asked == std::vector<std::uint64_t>{76 * kMiB});
    CHECK(scene.gpu->within_limit(nullptr));
}

TEST_CASE("looks that find nothing become rare, however often cached blocks go round") {
    Scene scene;
    constexpr int kRounds = 200;
    const auto looks = [&] {
        const int before = machine.readings;
        for (int i = 0; i < kRounds; i++) scene.gpu->look_at_cached();
        return machine.readings - before;
    };
    // So many at once; afterwards one in a tenth of a second.
    const int first = looks();
    CHECK(first >= 16);
    CHECK(first < kRounds / 2);
    CHECK(looks() < kRounds / 2);
}

TEST_CASE("a GPU of which nothing was measured yet isn't looked at") {
    Scene scene;
    VirtualGpu unseen;
    PhysicalGpu physical;
    physical.open({}, 16384 * kMiB);
    Slice slice;
    slice.limited = true;
    slice.limit = 1024 * kMiB;
    unseen.open(1, {}, physical, "made up", slice);
    const int before = machine.readings;
    unseen.look_at_cached();
    unseen.refresh_if_stale();
    CHECK(machine.readings == before);
    CHECK(unseen.budget().used() == 0);
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
}
