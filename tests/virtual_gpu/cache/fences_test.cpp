// SPDX-License-Identifier: Apache-2.0
// Points in the work of contexts: what is left of one that can't be made, of one that is dropped, and of contexts that
// end; and whose events are used again.
#include "virtual_gpu/cache/fences.h"

#include <latch>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/virtual_gpu/made_up_driver.h"
#include "virtual_gpu/gpu/visit.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// Three contexts, of which the first one is current in this thread; the GPU is done with nothing by itself.
struct Scene {
    Scene() {
        for (const CUcontext one : all)
            driver.make(one);
        MadeUpDriver::stack() = {all[0]};
        driver.instant = false;
    }
    Fence make(size_t count) { return fences.make(all.data(), count); }
    /// Passed, with the events to spare.
    void prepare(size_t count) {
        const Fence fence = make(count);
        REQUIRE(fence);
        driver.pass_all();
        REQUIRE(fences.passed(fence, false));
    }
    /// That calls left this thread's stack as it was, and gave the driver nothing that had ended.
    void check_clean() {
        CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{all[0]});
        CHECK(driver.misuses == 0);
    }

    const std::vector<CUcontext> all{context(1), context(2), context(3)};
    MadeUpDriver driver;
    Fences fences;
};

}  // namespace

TEST_CASE("without an event there is no fence, and those that were had are to spare for the next one") {
    Scene scene;
    scene.prepare(2);
    REQUIRE(scene.driver.events_made == 2);
    const std::string refuses = GENERATE("cuEventCreate", "cuCtxRecordEvent", "cuCtxPushCurrent");
    scene.driver.say[refuses] = CUDA_ERROR_UNKNOWN;
    CHECK(scene.make(3) == 0);
    CHECK(scene.make(3) == 0);
    scene.driver.say.clear();
    const unsigned made = scene.driver.events_made;
    const Fence fence = scene.make(2);
    CHECK(fence);
    CHECK(scene.driver.events_made == made);
    CHECK_FALSE(scene.fences.passed(fence, false));
    scene.driver.pass_all();
    CHECK(scene.fences.passed(fence, false));
    scene.check_clean();
}

TEST_CASE("without memory for a fence there is none, and the driver is asked for nothing") {
    Scene scene;
    Fence fence = 4711;
    {
        const NoMemory none;
        CHECK(scene.make(2) == 0);
        CHECK_FALSE(scene.fences.past(scene.all[0], &fence));
    }
    CHECK(fence == 0);
    CHECK(scene.driver.calls == 0);
    CHECK(scene.make(2));
}

TEST_CASE("a driver without events of a context's work makes no fence, and nothing for one") {
    Scene scene;
    MadeUpDriver::lacks(Function::cuCtxRecordEvent);
    Fence fence = 4711;
    CHECK(scene.make(3) == 0);
    CHECK_FALSE(scene.fences.past(scene.all[0], &fence));
    CHECK(fence == 0);
    CHECK(scene.driver.events_made == 0);
}

TEST_CASE("a fence of no context is none") {
    Scene scene;
    CHECK(scene.make(0) == 0);
    CHECK(scene.driver.calls == 0);
}

TEST_CASE("a fence is passed once the GPU has come past the work of each context") {
    Scene scene;
    const Fence fence = scene.make(3);
    REQUIRE(fence);
    CHECK_FALSE(scene.fences.passed(fence, false));
    std::vector<CUevent> events;
    for (const auto& [event, known] : scene.driver.events)
        events.push_back(event);
    REQUIRE(events.size() == 3);
    for (const CUevent event : events) {
        CHECK_FALSE(scene.fences.passed(fence, false));
        scene.driver.events[event].passed = true;
    }
    CHECK(scene.fences.passed(fence, false));
    scene.check_clean();
}

TEST_CASE("a fence that is waited for is passed, and its events are used again") {
    Scene scene;
    for (int i = 0; i < 10; i++) {
        const Fence fence = scene.make(3);
        REQUIRE(fence);
        CHECK(scene.fences.passed(fence, true));
    }
    CHECK(scene.driver.events_made == 3);
    CHECK(scene.driver.calls_of("cuEventSynchronize") == 30);
    scene.check_clean();
}

TEST_CASE("a fence of as many contexts as there may be is one") {
    Scene scene;
    std::vector<CUcontext> many;
    for (size_t i = 0; i < Fences::kMaxContexts; i++) {
        many.push_back(context(100 + i));
        scene.driver.make(many.back());
    }
    const Fence fence = scene.fences.make(many.data(), many.size());
    REQUIRE(fence);
    CHECK(scene.driver.events.size() == Fences::kMaxContexts);
    CHECK_FALSE(scene.fences.passed(fence, false));
    scene.driver.pass_all();
    CHECK(scene.fences.passed(fence, false));
    scene.check_clean();
}

TEST_CASE("an error is never a pass, and the fence is there as before") {
    Scene scene;
    const Fence fence = scene.make(2);
    REQUIRE(fence);
    scene.driver.pass_all();
    scene.driver.say["cuEventQuery"] = scene.driver.say["cuEventSynchronize"] = CUDA_ERROR_ILLEGAL_ADDRESS;
    CHECK_FALSE(scene.fences.passed(fence, false));
    CHECK_FALSE(scene.fences.passed(fence, true));
    scene.driver.say.clear();
    CHECK(scene.fences.passed(fence, false));
}

TEST_CASE("a dropped fence's events are to spare, though the GPU has not come past them") {
    Scene scene;
    const Fence first = scene.make(3), second = scene.make(3);
    REQUIRE(first);
    REQUIRE(second);
    scene.fences.drop(first);
    const Fence third = scene.make(3);
    CHECK(third);
    CHECK(scene.driver.events_made == 6);
    CHECK_FALSE(scene.fences.passed(second, false));
    scene.fences.drop(third);
    scene.fences.drop(second);
    scene.check_clean();
}

TEST_CASE("an event that there is no memory to keep is destroyed, and the fence passed all the same") {
    Scene scene;
    const Fence fence = scene.make(1);
    REQUIRE(fence);
    scene.driver.pass_all();
    {
        const NoMemory none;
        CHECK(scene.fences.passed(fence, false));
    }
    CHECK(scene.driver.events.empty());
    CHECK(scene.make(1));
    CHECK(scene.driver.events_made == 2);
}

TEST_CASE("a context's end takes its events: a fence needs the others' alone, and none of them is used again") {
    Scene scene;
    const Fence fence = scene.make(3), dropped = scene.make(3);
    REQUIRE(fence);
    scene.fences.drop(dropped);  // events to spare
    scene.driver.end(scene.all[1]);
    scene.fences.context_ended(scene.all[1]);
    CHECK_FALSE(scene.fences.passed(fence, false));
    scene.driver.pass_all();
    CHECK(scene.fences.passed(fence, false));
    CHECK(scene.make(3) == 0);  // one of them is none any more
    CHECK(scene.driver.events_made == 6);
    scene.driver.make(scene.all[1]);  // another one by the same handle
    CHECK(scene.make(3));
    CHECK(scene.driver.events_made == 7);
    scene.check_clean();
}

TEST_CASE("a fence whose contexts have all ended is passed without a question") {
    Scene scene;
    const Fence fence = scene.make(1);
    REQUIRE(fence);
    scene.driver.end(scene.all[0]);
    scene.fences.context_ended(scene.all[0]);
    const unsigned before = scene.driver.calls;
    CHECK(scene.fences.passed(fence, GENERATE(false, true)));
    CHECK(scene.driver.calls == before);
}

TEST_CASE("a context that ends while its event is asked about is not asked again") {
    Scene scene;
    const Fence fence = scene.make(1);
    REQUIRE(fence);
    scene.driver.meanwhile = [&](std::string_view function) {
        if (function != "cuEventQuery")
            return;
        scene.driver.meanwhile = nullptr;
        scene.fences.context_ended(scene.all[0]);
    };
    scene.driver.say["cuEventQuery"] = CUDA_ERROR_INVALID_HANDLE;
    CHECK(scene.fences.passed(fence, false));
}

TEST_CASE("where the GPU is done at once there is no fence, and one event serves a thread's own context") {
    Scene scene;
    scene.driver.instant = true;
    Fence fence = 4711;
    for (int i = 0; i < 5; i++) {
        CHECK(scene.fences.past(scene.all[0], &fence));
        CHECK(fence == 0);
    }
    CHECK(scene.driver.events_made == 1);
    for (int i = 0; i < 5; i++)
        CHECK(scene.fences.past(scene.all[1], &fence));  // not this thread's own
    CHECK(scene.driver.events_made == 2);
    scene.check_clean();
}

TEST_CASE("an event that a thread has kept goes with its context, and that of a thread that has ended is used again") {
    Scene scene;
    scene.driver.instant = true;
    Fence fence = 4711;
    // The second time the event is had from those to spare, and kept.
    const auto ask = [&] { return scene.fences.past(scene.all[0], &fence) && scene.fences.past(scene.all[0], &fence); };
    CHECK(ask());
    CHECK(scene.driver.events_made == 1);
    scene.fences.context_ended(scene.all[0]);
    CHECK(ask());
    CHECK(scene.driver.events_made == 2);
    std::thread([&] {
        MadeUpDriver::stack() = {scene.all[0]};
        CHECK(ask());
        CHECK(scene.driver.events_made == 3);
        scene.fences.thread_ends();
    }).join();
    std::thread([&] {
        MadeUpDriver::stack() = {scene.all[0]};
        CHECK(ask());
    }).join();
    CHECK(scene.driver.events_made == 3);
}

TEST_CASE("where the GPU is at work there is a fence, which is passed later") {
    Scene scene;
    scene.prepare(2);
    const CUcontext of = scene.all[GENERATE(0, 1)];
    Fence fence = 0;
    CHECK_FALSE(scene.fences.past(of, &fence));
    REQUIRE(fence);
    CHECK_FALSE(scene.fences.passed(fence, false));
    scene.driver.pass_all();
    CHECK(scene.fences.passed(fence, false));
    CHECK(scene.driver.events_made == 2);
    scene.check_clean();
}

TEST_CASE("an event that the driver doesn't record proves nothing, and is to spare") {
    Scene scene;
    scene.prepare(1);
    scene.driver.instant = true;
    scene.driver.say["cuCtxRecordEvent"] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    Fence fence = 4711;
    CHECK_FALSE(scene.fences.past(scene.all[0], &fence));
    CHECK(fence == 0);
    scene.driver.say.clear();
    CHECK(scene.fences.past(scene.all[0], &fence));
    CHECK(scene.driver.events_made == 1);
}

TEST_CASE("an event that went with a context that has ended meanwhile proves nothing, and is not used again") {
    Scene scene;
    scene.prepare(1);
    scene.driver.meanwhile = [&](std::string_view function) {
        if (function != "cuEventQuery")
            return;
        scene.driver.meanwhile = nullptr;
        scene.driver.pass_all();
        scene.fences.context_ended(scene.all[0]);
    };
    Fence fence = 4711;
    CHECK_FALSE(scene.fences.past(scene.all[0], &fence));
    CHECK(fence == 0);
    CHECK(scene.make(1));
    CHECK(scene.driver.events_made == 2);
}

TEST_CASE("threads with fences of the same contexts never share an event that the GPU has not come past") {
    Scene scene;
    std::atomic<unsigned> recorded_twice{0}, failed{0};
    // Nothing is dropped here, so what is recorded was passed before.
    static std::mutex mutex;
    static std::set<CUevent> out;
    static std::atomic<unsigned>* twice;
    out.clear();
    twice = &recorded_twice;
    scene.driver.put(
        Function::cuCtxRecordEvent, +[](CUcontext, CUevent event) -> CUresult {
            const std::lock_guard lock(mutex);
            if (!out.insert(event).second)
                (*twice)++;
            return CUDA_SUCCESS;
        });
    scene.driver.put(
        Function::cuEventSynchronize, +[](CUevent event) -> CUresult {
            const std::lock_guard lock(mutex);
            out.erase(event);
            return CUDA_SUCCESS;
        });
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            MadeUpDriver::stack() = {scene.all[t % 3]};
            for (int i = 0; i < 300; i++) {
                const Fence one = scene.make(3), other = scene.make(1 + t % 2);
                if (!one || !other || !scene.fences.passed(other, true) || !scene.fences.passed(one, true))
                    failed++;
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(recorded_twice == 0);
    CHECK(failed == 0);
    CHECK(out.empty());
    CHECK(scene.driver.events_made <= 4 * 5);
    scene.check_clean();
}

TEST_CASE("contexts that end among fences take their events with them, and every fence is passed in the end") {
    Scene scene;
    scene.driver.instant = true;
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; t++)
        threads.emplace_back([&] {
            MadeUpDriver::stack() = {scene.all[0]};
            while (!over)
                if (const Fence fence = scene.make(3))
                    scene.fences.passed(fence, true);
        });
    for (uintptr_t i = 0; i < 100; i++) {
        const CUcontext ending = context(1000 + i);
        scene.driver.make(ending);
        MadeUpDriver::stack() = {scene.all[0]};
        const Fence fence = scene.fences.make(&ending, 1);
        CHECK(fence);
        {
            const ContextEnd end(ending);
            scene.driver.end(ending);
            scene.fences.context_ended(ending);
        }
        CHECK(scene.fences.passed(fence, true));
    }
    over = true;
    for (std::thread& thread : threads)
        thread.join();
    scene.check_clean();
}
