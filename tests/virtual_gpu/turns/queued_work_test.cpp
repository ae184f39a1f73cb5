// SPDX-License-Identifier: Apache-2.0
// Marks in the work of a process's contexts: when they are passed, when none can be made, and what is waited for then.
#include "virtual_gpu/turns/queued_work.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/virtual_gpu/made_up_driver.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

const CUstream kStream = stream(1);
CUstreamCaptureMode mode_now = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult CUDAAPI exchange(CUstreamCaptureMode* mode) {
    std::swap(*mode, mode_now);
    return CUDA_SUCCESS;
}

/// So many contexts, none of which is current in this thread; the GPUs are done with nothing by themselves.
struct Scene {
    explicit Scene(uintptr_t contexts = 2) {
        for (uintptr_t i = 1; i <= contexts; i++)
            driver.make(context(i));
        driver.instant = false;
    }
    void begin_capture() {
        process->captures.may_begin(kStream, CaptureTracker::By::known);
        driver.capturing[kStream] = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        process->captures.began(kStream);
    }
    void end(CUcontext one) {
        driver.end(one);
        process->fences.context_ended(one);
    }
    void check_clean() {
        CHECK(MadeUpDriver::stack().empty());
        CHECK(driver.misuses == 0);
    }

    MadeUpDriver driver;
    std::unique_ptr<Quiescence> process = std::make_unique<Quiescence>();
    QueuedWork work{*process};
};

}  // namespace

TEST_CASE("a mark is passed once the GPUs have come past all work before it, and once") {
    Scene scene(3);
    REQUIRE(scene.work.mark(7));
    CHECK(scene.driver.events.size() == 3);
    CHECK_FALSE(scene.work.passed());
    scene.driver.events.begin()->second.passed = true;
    CHECK_FALSE(scene.work.passed());
    CHECK(scene.work.any());
    scene.driver.pass_all();
    CHECK(scene.work.passed() == 7);
    CHECK_FALSE(scene.work.any());
    CHECK_FALSE(scene.work.passed());
    scene.check_clean();
}

TEST_CASE("marks are passed one after the other, and the last one is told") {
    Scene scene(1);
    REQUIRE(scene.work.mark(1));
    REQUIRE(scene.work.mark(2));
    scene.driver.pass_all();
    REQUIRE(scene.work.mark(3));
    CHECK(scene.work.passed() == 2);
    CHECK(scene.work.any());
    scene.driver.pass_all();
    CHECK(scene.work.passed() == 3);
}

TEST_CASE("there are no more marks than there is room for, and room again behind those that are passed") {
    Scene scene(1);
    uint64_t most = 0;
    while (scene.work.mark(most + 1))
        most++;
    REQUIRE(most >= 2);
    const unsigned made = scene.driver.events_made;
    CHECK_FALSE(scene.work.mark(most + 1));
    CHECK(scene.driver.events_made == made);
    scene.driver.pass_all();
    CHECK(scene.work.passed() == most);
    CHECK(scene.work.mark(most + 1));
    CHECK(scene.driver.events_made == made);
    scene.work.drop();
}

TEST_CASE("while a stream is captured there is no mark, and those that there are can be passed") {
    Scene scene;
    REQUIRE(scene.work.mark(1));
    scene.begin_capture();
    const unsigned made = scene.driver.events_made;
    CHECK_FALSE(scene.work.mark(2));
    CHECK(scene.driver.events_made == made);
    scene.driver.pass_all();
    CHECK(scene.work.passed() == 1);
    scene.process->captures.ended(kStream, scene.process->captures.moment());
    CHECK(scene.work.mark(2));
    scene.work.drop();
}

TEST_CASE("a context that ends under a mark has run out, and its mark needs the others alone") {
    Scene scene(3);
    REQUIRE(scene.work.mark(1));
    scene.end(context(2));
    CHECK_FALSE(scene.work.passed());
    scene.driver.pass_all();
    CHECK(scene.work.passed() == 1);
    REQUIRE(scene.work.mark(2));
    scene.end(context(1));
    scene.end(context(3));
    CHECK(scene.work.passed() == 2);
    scene.check_clean();
}

TEST_CASE("an error that stays carries nothing out any more: the mark counts as passed, and is no more") {
    Scene scene;
    REQUIRE(scene.work.mark(1));
    scene.driver.say["cuEventQuery"] = GENERATE(CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED);
    CHECK(scene.work.passed() == 1);
    CHECK_FALSE(scene.work.any());
    scene.driver.say.clear();
    const unsigned made = scene.driver.events_made;
    CHECK(scene.work.mark(2));
    CHECK(scene.driver.events_made == made);
    scene.work.drop();
}

TEST_CASE("where one context can't be marked there is no mark, and what was made for it is to spare") {
    Scene scene;
    scene.driver.say[GENERATE("cuCtxRecordEvent", "cuEventCreate", "cuCtxPushCurrent")] = CUDA_ERROR_UNKNOWN;
    CHECK_FALSE(scene.work.mark(1));
    CHECK_FALSE(scene.work.any());
    scene.driver.say.clear();
    REQUIRE(scene.work.mark(2));
    CHECK(scene.driver.events.size() == 2);
    scene.work.drop();
    scene.check_clean();
}

TEST_CASE("one mark is of all contexts, also of more than a fence has room for") {
    constexpr uintptr_t kMany = 2 * Fences::kMaxContexts + 1;
    Scene scene(kMany);
    REQUIRE(scene.work.mark(1));
    CHECK(scene.driver.events.size() == kMany);
    for (auto& [event, known] : scene.driver.events) {
        CHECK_FALSE(scene.work.passed());
        known.passed = true;
    }
    CHECK(scene.work.passed() == 1);
}

TEST_CASE("without a context there is no mark, and nothing to wait for") {
    Scene scene(0);
    scene.driver.put(Function::cuThreadExchangeStreamCaptureMode, exchange);
    CHECK_FALSE(scene.work.mark(1));
    CHECK(scene.work.wait_for_all());
    CHECK(scene.driver.calls == 0);
}

TEST_CASE("marks that are dropped are never passed, and their events are used again") {
    Scene scene;
    REQUIRE(scene.work.mark(1));
    REQUIRE(scene.work.mark(2));
    const unsigned made = scene.driver.events_made;
    scene.work.drop();
    CHECK_FALSE(scene.work.any());
    scene.driver.pass_all();
    CHECK_FALSE(scene.work.passed());
    CHECK(scene.work.mark(3));
    CHECK(scene.driver.events_made == made);
    scene.work.drop();
    scene.check_clean();
}

TEST_CASE("a driver that can't mark has its work waited for by a free in each context, in the relaxed mode") {
    Scene scene;
    MadeUpDriver::lacks(Function::cuCtxRecordEvent);
    scene.driver.put(Function::cuThreadExchangeStreamCaptureMode, exchange);
    CHECK_FALSE(QueuedWork::can_mark());
    CHECK_FALSE(scene.work.mark(1));
    CHECK(scene.driver.calls == 0);
    bool relaxed = true;
    scene.driver.meanwhile = [&](std::string_view) { relaxed = relaxed && mode_now == CU_STREAM_CAPTURE_MODE_RELAXED; };
    CHECK(scene.work.wait_for_all());
    CHECK(relaxed);
    CHECK(scene.driver.calls_of("cuMemFree") == 2);
    CHECK(scene.driver.memory.empty());
    CHECK(mode_now == CU_STREAM_CAPTURE_MODE_GLOBAL);
    scene.driver.room = 0;
    CHECK_FALSE(scene.work.wait_for_all());
    CHECK(mode_now == CU_STREAM_CAPTURE_MODE_GLOBAL);
    scene.check_clean();
}

TEST_CASE("a driver without modes of captures is not waited for") {
    Scene scene;
    MadeUpDriver::lacks(Function::cuCtxRecordEvent);
    CHECK_FALSE(scene.work.wait_for_all());
    CHECK(scene.driver.calls == 0);
}

TEST_CASE("threads that mark at once while another one asks and drops give the driver nothing that has ended") {
    Scene scene;
    scene.driver.instant = true;
    std::atomic<uint64_t> launches{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 300; i++)
                scene.work.mark(++launches);
        });
    for (int i = 0; i < 300; i++)
        i % 10 ? static_cast<void>(scene.work.passed()) : scene.work.drop();
    for (std::thread& thread : threads)
        thread.join();
    scene.work.passed();
    CHECK_FALSE(scene.work.any());
    scene.check_clean();
}
