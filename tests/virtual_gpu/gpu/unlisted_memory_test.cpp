// SPDX-License-Identifier: Apache-2.0
// Exported memory that was released, and that NVML lists no process with: who is charged with it, and until when.
#include "tests/virtual_gpu/gpu/footprint_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kContext = 300 * kMiB, kPiece = 64 * kMiB;
// Bytes in use with no process in any list, and those of the other process in the list.
constexpr uint64_t kNobodys = 600 * kMiB, kOther = 77 * kMiB;

/// A process with a context and exported memory.
struct ExportedScene : FootprintScene {
    ExportedScene() {
        machine.all = kNobodys + kOther;
        open();
        grow(kContext);
        allocate(2 * kPiece);
        look();
    }
    ~ExportedScene() { put(NvmlFunction::nvmlDeviceGetGraphicsRunningProcesses_v3, static_cast<void (*)()>(nullptr)); }
    uint64_t begin() { return part.unlisted().begin(budget.used() - kContext - unlisted()); }
    // The driver releases a piece, which somebody keeps or not.
    void release(uint64_t before, bool kept = true) {
        frees.begin();
        machine.process -= kPiece;
        if (!kept)
            machine.all -= kPiece;
        {
            const LockGuard lock(mutex);
            part.unlisted().keep(kPiece, budget, before);
        }
        frees.end();
        part.unlisted().end();
    }
    void look() { CHECK(part.refresh({0, 1}, budgets)); }
    uint64_t unlisted() {
        const LockGuard lock(mutex);
        return part.unlisted().bytes();
    }
    // The bytes that are charged for pieces. Checks that what the driver takes is not changed by them.
    uint64_t charged() {
        look();
        CHECK(part.bytes() == kContext);
        return budget.used() - kContext;
    }
};

}  // namespace

TEST_CASE("memory that nobody is listed with stays charged until it is gone from the GPU") {
    ExportedScene scene;
    CHECK_FALSE(scene.part.unlisted().any());
    const uint64_t before = scene.begin();
    CHECK(before == kNobodys);
    CHECK(scene.part.unlisted().any());
    scene.release(before);
    CHECK(scene.part.unlisted().any());
    CHECK(scene.charged() == 2 * kPiece);
    CHECK(scene.unlisted() == kPiece);
    machine.all -= kPiece;
    CHECK(scene.charged() == kPiece);
    CHECK_FALSE(scene.part.unlisted().any());
    // Nothing is asked for what isn't there.
    const int readings = machine.readings;
    scene.look();
    CHECK(machine.readings == readings + 1);
}

TEST_CASE("memory that nobody kept is charged to nobody as soon as it is looked at") {
    ExportedScene scene;
    scene.release(scene.begin(), false);
    CHECK(scene.charged() == kPiece);
    CHECK_FALSE(scene.part.unlisted().any());
    scene.release(scene.begin());
    CHECK(scene.charged() == kPiece);
    CHECK(scene.unlisted() == kPiece);
}

TEST_CASE("what others have that nobody is listed with moves the charge no further than what was kept") {
    ExportedScene scene;
    scene.release(scene.begin());
    machine.all += 1000 * kMiB;
    CHECK(scene.charged() == 2 * kPiece);
    SECTION("it stays too long") {
        machine.all -= kPiece;
        CHECK(scene.charged() == 2 * kPiece);
        machine.all -= 1000 * kMiB;
        CHECK(scene.charged() == kPiece);
    }
    SECTION("it goes too early") {
        machine.all -= 1000 * kMiB + kPiece / 4;
        CHECK(scene.charged() == 2 * kPiece - kPiece / 4);
        machine.all = 0;
        CHECK(scene.charged() == kPiece);
    }
    SECTION("and what a process in the list has moves nothing") {
        machine.process += 24 * kMiB;
        scene.look();
        machine.all += 24 * kMiB;
        scene.look();
        CHECK(scene.budget.used() == kContext + 2 * kPiece + 24 * kMiB);
    }
}

TEST_CASE("of releases at once none hides what another one kept") {
    const bool later_first = GENERATE(false, true);
    ExportedScene scene;
    const uint64_t first = scene.begin();
    machine.process -= kPiece;  // the driver has released the first one's, which isn't noted yet
    const uint64_t second = scene.begin();
    CHECK(second == first + kPiece);
    machine.process += kPiece;
    scene.release(later_first ? second : first);
    scene.release(later_first ? first : second);
    CHECK(scene.charged() == 2 * kPiece);
    CHECK(scene.unlisted() == 2 * kPiece);
    machine.all -= kPiece;
    CHECK(scene.charged() == kPiece);
}

TEST_CASE("a process that is in no list is taken to be among what nobody is listed with") {
    ExportedScene scene;
    machine.listed = false;
    const uint64_t before = scene.begin();
    CHECK(before == kNobodys + kContext);
    machine.listed = true;
    scene.release(before - kContext);  // which ended before
    CHECK(scene.charged() == 2 * kPiece);
    machine.listed = false;
    scene.look();
    machine.listed = true;
    CHECK(scene.charged() == 2 * kPiece);
}

TEST_CASE("what can't be told of memory that nobody is listed with leaves the charge") {
    ExportedScene scene;
    SECTION("NVML doesn't answer before the release") {
        machine.answers = false;
        const uint64_t before = scene.begin();
        CHECK(before == 0);
        machine.answers = true;
        scene.release(before, false);
        CHECK(scene.charged() == 2 * kPiece);
    }
    SECTION("NVML doesn't answer after it") {
        scene.release(scene.begin(), false);
        machine.answers = false;
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.budget.used() == kContext + 2 * kPiece);
        machine.answers = true;
        CHECK(scene.charged() == kPiece);
    }
    SECTION("others take memory all the time") {
        scene.release(scene.begin(), false);
        machine.meanwhile = [] { machine.process += kMiB, machine.all += kMiB; };
        scene.part.unlisted().look();
        machine.meanwhile = [] {};
        CHECK(scene.unlisted() == kPiece);
    }
    SECTION("something is being released") {
        scene.release(scene.begin(), false);
        scene.frees.begin();
        scene.part.unlisted().look();
        CHECK(scene.unlisted() == kPiece);
        scene.frees.end();
        scene.part.unlisted().look();
        CHECK(scene.unlisted() == 0);
    }
}

TEST_CASE("a process that computes and draws is listed twice, and one that draws alone once") {
    ExportedScene scene;
    put(
        NvmlFunction::nvmlDeviceGetGraphicsRunningProcesses_v3,
        +[](nvmlDevice_t, unsigned* count, nvmlProcessInfo_t* infos) -> nvmlReturn_t {
            *count = 3;
            infos[0].pid = kPid;
            infos[0].usedGpuMemory = machine.process;
            infos[1].pid = kPid + 2;
            infos[1].usedGpuMemory = 30 * kMiB;
            infos[2].pid = kPid + 3;
            infos[2].usedGpuMemory = ~0ull;  // not told
            return NVML_SUCCESS;
        });
    CHECK(scene.begin() == kNobodys - 30 * kMiB);
}

TEST_CASE("what nobody is listed with is charged to the partition that had it, and never on top of a limit") {
    FootprintScene scene;
    Budget small, large;
    const DriverFootprint::Share shares[2] = {{&small, DriverFootprint::Share::kWhole / 4}, {&large}};
    const DriverFootprint::Budgets both{shares};
    machine.all = kNobodys + kOther;
    scene.open(kPid, 1000 * kMiB);
    DriverFootprint::Step step = scene.part.before(both);
    machine.listed = true;
    machine.process += kContext;
    machine.all += kContext;
    scene.part.after(step, {}, both);
    const auto take = [&](Budget& budget) {
        REQUIRE(budget.reserve(kPiece));
        budget.commit();
        machine.process += kPiece;
        machine.all += kPiece;
    };
    take(small);
    take(large);
    for (Budget* budget : {&large, &small}) {
        const uint64_t before = scene.part.unlisted().begin(0);
        machine.process -= kPiece;
        const LockGuard lock(scene.mutex);
        scene.part.unlisted().keep(kPiece, *budget, before);
        scene.part.unlisted().end();
    }
    CHECK(scene.part.refresh({0, 1}, both));
    CHECK(scene.part.on_top() == kContext);
    CHECK(small.used() == kPiece);
    CHECK(large.used() == kPiece);
    machine.all -= 2 * kPiece;
    CHECK(scene.part.refresh({0, 1}, both));
    CHECK(small.used() + large.used() == 0);
    CHECK(scene.part.on_top() == kContext);
}
