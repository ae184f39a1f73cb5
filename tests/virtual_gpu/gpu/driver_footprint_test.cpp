// SPDX-License-Identifier: Apache-2.0
// The driver's footprint, read from a made-up NVML.
#include "virtual_gpu/gpu/driver_footprint.h"

#include "tests/catch.h"
#include "tests/virtual_gpu/gpu/footprint_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

using Scene = FootprintScene;

}  // namespace

TEST_CASE("the process's figure less what is charged by itself is the driver's footprint") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    CHECK(scene.part.exact());
    CHECK(scene.part.bytes() == 300 * kMiB);
    CHECK(scene.budget.used() == 300 * kMiB);
    scene.allocate(1000 * kMiB);
    machine.process += 20 * kMiB;  // lazily loaded, and nobody was told
    scene.part.refresh({}, scene.budgets);
    CHECK(scene.part.bytes() == 320 * kMiB);
    CHECK(scene.budget.used() == 1320 * kMiB);
    machine.listed = false;  // the last context is gone, and what was allocated with it
    scene.budget.release(1000 * kMiB);
    scene.part.refresh({}, scene.budgets);
    CHECK(scene.budget.used() == 0);
}

TEST_CASE("the first context is read once") {
    Scene scene;
    scene.open();
    machine.readings = 0;
    scene.grow(300 * kMiB);
    CHECK(machine.readings == 1);
}

TEST_CASE("silence is not zero") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    machine.answers = false;
    scene.part.refresh({}, scene.budgets);
    CHECK(scene.part.bytes() == 300 * kMiB);
    CHECK(scene.budget.used() == 300 * kMiB);
}

TEST_CASE("where our pid in NVML's list is not known, a process of the same number is somebody else") {
    Scene scene;
    machine.listed = true;
    machine.process = 5000 * kMiB;
    machine.all = 5000 * kMiB;
    scene.open(0);
    scene.grow(300 * kMiB);
    CHECK_FALSE(scene.part.exact());
    CHECK(scene.part.bytes() == 300 * kMiB);
}

TEST_CASE("a context that nobody saw begin is in NVML's figure") {
    Scene scene;
    machine.listed = true;
    machine.process = machine.all = 300 * kMiB;
    scene.open();
    scene.part.meet({0, 1}, scene.budgets);
    CHECK(scene.part.exact());
    CHECK(scene.budget.used() == 300 * kMiB);
    machine.process += 200 * kMiB;  // and another one
    scene.part.meet({0, 1}, scene.budgets);
    CHECK(scene.budget.used() == 500 * kMiB);
}

TEST_CASE("a context that nobody saw begin, where NVML does not list us, is what nobody else is known to hold") {
    Scene scene;
    scene.listable = false;
    machine.all = 1200 * kMiB;
    scene.open();
    scene.part.meet({0, 1, 1000 * kMiB}, scene.budgets);
    CHECK_FALSE(scene.part.exact());
    CHECK(scene.part.bytes() == 200 * kMiB);

    SECTION("and a second one is what has come since") {
        scene.allocate(64 * kMiB);
        machine.all += 150 * kMiB;
        scene.part.meet({0, 1, 1000 * kMiB}, scene.budgets);
        CHECK(scene.part.bytes() == 350 * kMiB);
    }
    SECTION("up to what a context can take") {
        machine.all += 5000 * kMiB;
        scene.part.meet({0, 1}, scene.budgets);
        CHECK(scene.part.bytes() == 700 * kMiB);
    }
    SECTION("until NVML lists us, whose figure is exact from then on") {
        machine.listed = true;
        machine.process = 310 * kMiB;
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.part.exact());
        CHECK(scene.budget.used() == 310 * kMiB);
    }
}

TEST_CASE("NVML's silence about us means nothing while a context of ours is there") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    machine.listed = false;
    scene.part.refresh({0, 1}, scene.budgets);
    CHECK(scene.budget.used() == 300 * kMiB);
    scene.part.refresh({0, 0}, scene.budgets);
    CHECK(scene.budget.used() == 0);
}

TEST_CASE("where NVML does not list us, the steps of the GPU's use count") {
    Scene scene;
    scene.listable = false;
    machine.all = 5000 * kMiB;  // somebody else's
    scene.open();
    scene.grow(300 * kMiB);
    CHECK_FALSE(scene.part.exact());
    CHECK(scene.part.bytes() == 300 * kMiB);

    SECTION("and what was allocated meanwhile is not the driver's") {
        DriverFootprint::Step step = scene.part.before(scene.budgets);
        scene.allocate(1000 * kMiB);
        machine.all += 24 * kMiB;
        scene.part.after(step, {}, scene.budgets);
        CHECK(scene.part.bytes() == 324 * kMiB);
        CHECK(scene.budget.used() == 1324 * kMiB);
    }
    SECTION("and it can't be less than nothing, whatever others give back") {
        DriverFootprint::Step step = scene.part.before(scene.budgets);
        machine.all -= 4000 * kMiB;
        scene.part.after(step, {}, scene.budgets);
        CHECK(scene.part.bytes() == 0);
        CHECK(scene.budget.used() == 0);
    }
    SECTION("and nothing is read between the steps") {
        machine.all += 1000 * kMiB;
        scene.part.refresh({}, scene.budgets);
        CHECK(scene.part.bytes() == 300 * kMiB);
    }
    SECTION("and freed memory that is not back yet counts until it is, and nothing else is taken for it") {
        scene.allocate(64 * kMiB);
        REQUIRE(scene.part.take_over(64 * kMiB, scene.budget, scene.budgets));
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.budget.used() == 364 * kMiB);
        machine.all += 1000 * kMiB;  // somebody else's
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.budget.used() == 364 * kMiB);
        machine.all -= 1064 * kMiB;
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.budget.used() == 300 * kMiB);
        machine.all -= 1000 * kMiB;
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.budget.used() == 300 * kMiB);
        machine.all += 64 * kMiB;  // somebody else's: nothing of ours is on its way any more
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.budget.used() == 300 * kMiB);
    }
    SECTION("and a step that can't be read at its end is read later") {
        DriverFootprint::Step step = scene.part.before(scene.budgets);
        machine.all += 24 * kMiB;
        REQUIRE(scene.budget.reserve(64 * kMiB));  // another thread's, under way all the time
        scene.part.after(step, {0, 1}, scene.budgets);
        CHECK_FALSE(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.part.bytes() == 300 * kMiB);
        scene.budget.roll_back(64 * kMiB);
        CHECK(scene.part.refresh({0, 1}, scene.budgets));
        CHECK(scene.part.bytes() == 324 * kMiB);
    }
    SECTION("and what overlapping steps take counts once, whichever ends first") {
        const bool inner_first = GENERATE(false, true);
        DriverFootprint::Step outer = scene.part.before(scene.budgets);
        machine.all += 8 * kMiB;
        DriverFootprint::Step inner = scene.part.before(scene.budgets);
        machine.all += 4 * kMiB;
        scene.part.after(inner_first ? inner : outer, {0, 1}, scene.budgets);
        machine.all += 2 * kMiB;
        scene.part.after(inner_first ? outer : inner, {0, 1}, scene.budgets);
        CHECK(scene.part.bytes() == 314 * kMiB);
        machine.all += 100 * kMiB;  // somebody else's
        DriverFootprint::Step later = scene.part.before(scene.budgets);
        machine.all += kMiB;
        scene.part.after(later, {0, 1}, scene.budgets);
        CHECK(scene.part.bytes() == 315 * kMiB);
    }
    SECTION("and a call that failed leaves nothing, of what was foreseen for it either") {
        {
            DriverFootprint::Step step = scene.part.before(scene.budgets);
            const LockGuard lock(scene.mutex);
            scene.part.foresee(step, 50 * kMiB);
            CHECK(scene.budget.used() == 350 * kMiB);
            scene.part.take_back(step);
            CHECK(scene.budget.used() == 300 * kMiB);
            scene.part.foresee(step, 60 * kMiB);
        }
        CHECK(scene.budget.used() == 300 * kMiB);
        machine.all += 100 * kMiB;  // somebody else's
        scene.grow(24 * kMiB);
        CHECK(scene.budget.used() == 324 * kMiB);
    }
    SECTION("and what was foreseen stays charged until it is measured") {
        DriverFootprint::Step step = scene.part.before(scene.budgets);
        {
            const LockGuard lock(scene.mutex);
            scene.part.foresee(step, 20 * kMiB);
        }
        CHECK(scene.part.refresh({0, 1}, scene.budgets));  // another thread's look: the driver isn't there yet
        CHECK(scene.budget.used() == 320 * kMiB);
        machine.all += 24 * kMiB;
        scene.part.after(step, {0, 1}, scene.budgets);
        CHECK(scene.budget.used() == 324 * kMiB);
    }
}

TEST_CASE("what others give back in the instant of a step leaves the contexts that are there what they took") {
    Scene scene;
    scene.listable = false;
    machine.all = 5000 * kMiB;
    scene.open();
    scene.grow(300 * kMiB, 0, true);
    DriverFootprint::Step step = scene.part.before(scene.budgets, true);
    machine.all += 310 * kMiB;
    scene.part.after(step, scene.alive(1), scene.budgets);
    scene.grow(24 * kMiB);
    CHECK(scene.part.bytes() == 634 * kMiB);
    step = scene.part.before(scene.budgets);
    machine.all -= 4000 * kMiB;
    scene.part.after(step, scene.alive(2), scene.budgets);
    CHECK(scene.part.bytes() == 610 * kMiB);
    step = scene.part.before(scene.budgets);
    machine.all -= 300 * kMiB;
    scene.part.after(step, scene.alive(1), scene.budgets);
    CHECK(scene.part.bytes() == 310 * kMiB);
    step = scene.part.before(scene.budgets);
    machine.all -= 310 * kMiB;
    scene.part.after(step, scene.alive(0), scene.budgets);
    CHECK(scene.part.bytes() == 0);
}

TEST_CASE("with the last context goes what others have blurred its steps by, but not what is on its way back") {
    Scene scene;
    scene.listable = false;
    scene.open();
    scene.grow(300 * kMiB);
    DriverFootprint::Step load = scene.part.before(scene.budgets);
    machine.all += 91 * kMiB;  // another process's, in the instant of the step
    scene.part.after(load, {0, 1}, scene.budgets);
    scene.allocate(64 * kMiB);
    scene.budget.release(64 * kMiB);
    REQUIRE(scene.part.take_over(64 * kMiB, scene.budget, scene.budgets));
    scene.budget.adjust(0, 64 * kMiB);
    DriverFootprint::Step end = scene.part.before(scene.budgets);
    machine.all -= 300 * kMiB;
    scene.part.after(end, {}, scene.budgets);
    CHECK(scene.part.bytes() == 155 * kMiB);
    scene.part.none_left(scene.budgets);
    CHECK(scene.budget.used() == 64 * kMiB);
    // The next context is measured from here.
    DriverFootprint::Step again = scene.part.before(scene.budgets);
    machine.all += 300 * kMiB;
    scene.part.after(again, {0, 1}, scene.budgets);
    CHECK(scene.part.bytes() == 364 * kMiB);
}

TEST_CASE("contexts that were counted before one ended don't hold its memory") {
    Scene scene;
    scene.listable = false;
    scene.open();
    scene.grow(300 * kMiB, 0, true);
    const DriverFootprint::State before = scene.alive(1);
    SECTION("since then") {
        DriverFootprint::Step step = scene.part.before(scene.budgets);
        machine.all -= 300 * kMiB;
        scene.part.after(step, scene.alive(0), scene.budgets);
        scene.part.refresh(before, scene.budgets);
    }
    SECTION("where its end is under way") {
        DriverFootprint::Step step = scene.part.before(scene.budgets);
        machine.all -= 300 * kMiB;
        scene.part.refresh(scene.alive(1), scene.budgets);
        scene.part.after(step, scene.alive(0), scene.budgets);
    }
    CHECK(scene.part.bytes() == 0);
}

TEST_CASE("a context that costs nothing for NVML is asked of CUDA") {
    Scene scene;
    scene.listable = false;
    machine.all = 1000 * kMiB;  // others', and never ours
    scene.open();
    DriverFootprint::Step step = scene.part.before(scene.budgets, true);
    shown_free = 16384 * kMiB - 1300 * kMiB;
    scene.part.after(step, {}, scene.budgets);
    CHECK(scene.part.bytes() == 300 * kMiB);
}

TEST_CASE("without NVML the first context is all that is in use, up to what one can take") {
    Scene scene;
    machine.there = false;
    machine.answers = false;
    scene.open();
    DriverFootprint::Step step = scene.part.before(scene.budgets);
    CHECK_FALSE(step.known());
    const uint64_t in_use = GENERATE(as<uint64_t>(), 300, 5000) * kMiB;
    shown_free = 16384 * kMiB - in_use;
    scene.part.after(step, {}, scene.budgets);
    CHECK(scene.part.bytes() == (in_use == 300 * kMiB ? 300 : 500) * kMiB);
    const uint64_t first = scene.part.bytes();
    DriverFootprint::Step module = scene.part.before(scene.budgets);
    shown_free -= 24 * kMiB;
    scene.part.after(module, {}, scene.budgets);
    CHECK(scene.part.bytes() == first + 24 * kMiB);
}

TEST_CASE("a reading during which others allocate or free is not believed") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    int left = 3;
    SECTION("an allocation that the driver has carried out and we have not committed") {
        machine.meanwhile = [&] {
            if (left-- == 3)
                REQUIRE(scene.budget.reserve(100 * kMiB));
            if (left == 0)
                scene.budget.commit();
        };
    }
    SECTION("one that came and went") {
        machine.meanwhile = [&] {
            if (left-- <= 0)
                return;
            REQUIRE(scene.budget.reserve(100 * kMiB));
            scene.budget.commit();
            scene.budget.release(100 * kMiB);
            machine.process = left ? 400 * kMiB : 300 * kMiB;
        };
    }
    SECTION("a free that the driver has carried out and we have not counted") {
        scene.allocate(100 * kMiB);
        machine.meanwhile = [&] {
            if (left-- == 3)
                scene.frees.begin(), machine.process -= 100 * kMiB;
            if (left == 0)
                scene.budget.release(100 * kMiB), scene.frees.end();
        };
    }
    CHECK(scene.part.refresh({}, scene.budgets));
    CHECK(left < 0);  // it was asked again, until nothing was under way
    CHECK(scene.part.bytes() <= 300 * kMiB);

    machine.meanwhile = [&] {
        REQUIRE(scene.budget.reserve(512));
        scene.budget.roll_back(512);
        machine.process = 1;
    };
    const uint64_t before = scene.part.bytes();
    CHECK_FALSE(scene.part.refresh({}, scene.budgets));  // never quiet: it gives up, and the last figure stands
    CHECK(scene.part.bytes() == before);
}

TEST_CASE("managed memory may be elsewhere, so it leaves a range") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    REQUIRE(scene.budget.reserve(1000 * kMiB));  // managed: charged, and on the GPU or not
    scene.budget.commit();
    const uint64_t resident = GENERATE(as<uint64_t>(), 0, 400, 1000) * kMiB;
    machine.process = 300 * kMiB + resident;
    scene.part.refresh({1000 * kMiB, 1}, scene.budgets);
    CHECK(scene.part.bytes() == 300 * kMiB);
    machine.process = 1350 * kMiB;  // more than all of it: 50 MiB must be the driver's
    scene.part.refresh({1000 * kMiB, 1}, scene.budgets);
    CHECK(scene.part.bytes() == 350 * kMiB);
    machine.process = 200 * kMiB;  // less than the driver's footprint was
    scene.part.refresh({1000 * kMiB, 1}, scene.budgets);
    CHECK(scene.part.bytes() == 200 * kMiB);
}

TEST_CASE("memory on its way back is the driver's until it is seen to be gone") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    scene.allocate(64 * kMiB);
    CHECK(scene.part.take_over(64 * kMiB, scene.budget, scene.budgets));
    scene.part.refresh({}, scene.budgets);
    CHECK(scene.budget.used() == 364 * kMiB);
    machine.process -= 64 * kMiB;
    scene.part.refresh({}, scene.budgets);
    CHECK(scene.budget.used() == 300 * kMiB);
    CHECK(scene.part.bytes() == 300 * kMiB);
}

TEST_CASE("memory on its way back is believed to be gone where managed memory leaves a range") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    scene.allocate(64 * kMiB);
    REQUIRE(scene.budget.reserve(100 * kMiB));  // managed, and on the GPU
    scene.budget.commit();
    machine.process += 100 * kMiB;
    CHECK(scene.part.take_over(64 * kMiB, scene.budget, scene.budgets));
    machine.process -= 64 * kMiB;
    scene.part.refresh({100 * kMiB, 1}, scene.budgets);
    CHECK(scene.part.bytes() == 300 * kMiB);
    // Once, and not at each reading that leaves a range.
    machine.process -= 100 * kMiB;  // the driver has moved the managed memory to the host
    scene.part.refresh({100 * kMiB, 1}, scene.budgets);
    CHECK(scene.part.bytes() == 300 * kMiB);
    machine.process += 100 * kMiB;
    // Another process has it still: what the figure needs is charged at least.
    CHECK(scene.part.take_over(0, scene.budget, scene.budgets));
    machine.process += 64 * kMiB;
    scene.part.refresh({100 * kMiB, 1}, scene.budgets);
    CHECK(scene.part.bytes() == 364 * kMiB);
}

TEST_CASE("a step that NVML's figure says all of is no open step, however it ends") {
    Scene scene;
    scene.open();
    scene.grow(300 * kMiB);
    REQUIRE(scene.part.exact());
    const uint64_t steps = scene.part.step_count();
    scene.grow(10 * kMiB);
    { const DriverFootprint::Step failed = scene.part.before(scene.budgets); }
    CHECK(scene.part.step_count() == steps);
    const LockGuard lock(scene.mutex);
    CHECK(scene.part.at_rest());
    CHECK(scene.part.bytes() == 310 * kMiB);
}

TEST_CASE("before anything was measured there is nothing to compare, and nothing is missed") {
    Scene scene;
    machine.all = 1000 * kMiB;
    scene.open(0);
    CHECK(scene.part.refresh(scene.alive(0), scene.budgets));
    CHECK(scene.part.bytes() == 0);
    // A later look that finds no quiet moment is not as good as one that does.
    scene.grow(300 * kMiB);
    CHECK(scene.part.refresh(scene.alive(1), scene.budgets));
    REQUIRE(scene.budget.reserve(kMiB));  // an allocation under way
    CHECK_FALSE(scene.part.refresh(scene.alive(1), scene.budgets));
    scene.budget.commit();
    CHECK(scene.part.bytes() == 300 * kMiB);
}
