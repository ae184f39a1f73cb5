// SPDX-License-Identifier: Apache-2.0
// Waits for all work on the GPUs that can touch a block: what is waited for, what is refused, and when nothing may be
// asked.
#include "virtual_gpu/cache/quiescence.h"

#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/allocator/backing.h"
#include "tests/catch.h"
#include "tests/virtual_gpu/made_up_driver.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr CUdeviceptr kAddress = CUdeviceptr{1} << 42;
const CUstream kStream = stream(1);

/// Two contexts of one GPU and one of another, which can't reach its memory; the first is current in this thread.
struct Scene {
    Scene() {
        driver.make(all[0], 10);
        driver.make(all[1], 10);
        driver.make(all[2], 11);
        MadeUpDriver::stack() = {all[0]};
        driver.contexts_of_streams[kStream] = all[0];
        driver.instant = false;
    }
    void begin_capture() {
        work->captures.may_begin(kStream, CaptureTracker::By::known);
        driver.capturing[kStream] = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        work->captures.began(kStream);
    }
    /// That nobody saw.
    void end_capture() { driver.capturing.clear(); }
    int quiesce(bool for_program = true) { return work->quiesce(all[0], kAddress, for_program); }
    std::set<CUcontext> waited() const { return {driver.waited_for.begin(), driver.waited_for.end()}; }

    const std::vector<CUcontext> all{context(1), context(2), context(3)};
    MadeUpDriver driver;
    std::unique_ptr<Quiescence> work = std::make_unique<Quiescence>();
};

}  // namespace

TEST_CASE("while a stream is captured nothing is waited for, and no event is made") {
    Scene scene;
    const Fence before = scene.work->fence(scene.all[0], kAddress);
    REQUIRE(before);
    scene.driver.pass_all();
    const unsigned made = scene.driver.events_made;
    scene.begin_capture();
    CHECK(scene.quiesce() == kNotNow);
    CHECK(scene.quiesce(false) == kNotNow);
    CHECK(scene.work->fence(scene.all[0], kAddress) == 0);
    CHECK_FALSE(scene.work->passed(before, false));
    CHECK_FALSE(scene.work->passed(before, true));
    CHECK(scene.driver.waited_for.empty());
    CHECK(scene.driver.events_made == made);
    CHECK(scene.driver.calls_of("cuEventQuery") == 0);
    CHECK(scene.driver.calls_of("cuEventSynchronize") == 0);
    scene.work->captures.ended(kStream, scene.work->captures.moment());
    CHECK(scene.work->passed(before, false));
    CHECK(scene.quiesce() == 0);
}

TEST_CASE("of a capture that has ended unseen the driver is asked before memory is refused, and not at a free") {
    Scene scene;
    scene.begin_capture();
    scene.end_capture();
    CHECK(scene.quiesce() == kNotNow);
    CHECK(scene.quiesce(false) == 0);
    CHECK(scene.quiesce() == 0);
}

namespace {

CUstreamCaptureMode mode_now = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult CUDAAPI exchange(CUstreamCaptureMode* mode) {
    std::swap(*mode, mode_now);
    return CUDA_SUCCESS;
}

}  // namespace

TEST_CASE("where memory is short during a capture, work is waited for by a free in the relaxed mode, and that only") {
    Scene scene;
    scene.driver.put(Function::cuThreadExchangeStreamCaptureMode, exchange);
    const Fence before = scene.work->fence(scene.all[0], kAddress);
    REQUIRE(before);
    scene.begin_capture();
    bool relaxed = true;
    scene.driver.meanwhile = [&](std::string_view function) {
        if (function.starts_with("cuMem") || function.starts_with("cuEvent"))
            relaxed = relaxed && mode_now == CU_STREAM_CAPTURE_MODE_RELAXED;
    };
    CHECK(scene.quiesce() == kNotNow);
    CHECK(scene.driver.calls_of("cuMemFree") == 0);
    CHECK(scene.quiesce(false) == 0);
    CHECK(scene.driver.calls_of("cuMemFree") == 2);  // one in each context of the GPU
    CHECK(scene.driver.memory.empty());
    CHECK(scene.driver.waited_for.empty());
    CHECK_FALSE(scene.work->passed(before, false));
    scene.driver.pass_all();
    CHECK(scene.work->passed(before, false));
    CHECK(relaxed);
    CHECK(mode_now == CU_STREAM_CAPTURE_MODE_GLOBAL);
    scene.driver.room = 0;
    CHECK(scene.quiesce(false) == kNotNow);
}

TEST_CASE("what a capture forbids that nobody saw begin is asked again later") {
    Scene scene;
    const auto forbidden = GENERATE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                                    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    scene.driver.say["cuCtxSynchronize"] = forbidden;
    CHECK(scene.quiesce() == kNotNow);
    CHECK(scene.quiesce(false) == kNotNow);
    scene.driver.say["cuCtxRecordEvent"] = forbidden;
    CHECK(scene.work->fence(scene.all[0], kAddress) == 0);
    scene.driver.say.clear();
    CHECK(scene.quiesce() == 0);
}

TEST_CASE("an error of the driver's is returned, and contexts that end meanwhile are none") {
    Scene scene;
    scene.driver.say["cuCtxSynchronize"] = CUDA_ERROR_LAUNCH_FAILED;
    CHECK(scene.quiesce() == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(scene.driver.calls_of("cuCtxSynchronize") == 1);
    scene.driver.say["cuCtxSynchronize"] = GENERATE(CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT);
    CHECK(scene.quiesce() == 0);
    CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{scene.all[0]});
}

TEST_CASE("the work of every context that can touch the memory is waited for, and of no other") {
    Scene scene;
    const bool old_driver = GENERATE(false, true);
    if (old_driver)
        MadeUpDriver::lacks(Function::cuCtxSynchronize_v2);
    CHECK(scene.quiesce() == 0);
    CHECK(scene.waited() == std::set<CUcontext>{scene.all[0], scene.all[1]});
    CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{scene.all[0]});
    const Fence fence = scene.work->fence(scene.all[0], kAddress);
    CHECK(fence);
    CHECK(scene.driver.events.size() == 2);
    scene.work->fences.drop(fence);
}

TEST_CASE("of more contexts than there is room for no fence is made and nothing is waited for") {
    Scene scene;
    for (uintptr_t i = 0; i < Fences::kMaxContexts - 2; i++)
        scene.driver.make(context(100 + i), 10);
    const Fence most = scene.work->fence(scene.all[0], kAddress);
    CHECK(most);
    scene.work->fences.drop(most);
    scene.driver.make(context(500), 10);
    CHECK(scene.work->fence(scene.all[0], kAddress) == 0);
    CHECK(scene.quiesce() == 0);
    CHECK(scene.waited().size() == Fences::kMaxContexts + 1);
    for (uintptr_t i = 0; i < Reach::kMaxContexts; i++)
        scene.driver.make(context(1000 + i), 10);
    scene.driver.waited_for.clear();
    CHECK(scene.quiesce() == kNotNow);
    CHECK(scene.driver.waited_for.empty());
}

TEST_CASE("a thread without a context is told so") {
    Scene scene;
    CHECK(Quiescence::in_context() == CUDA_SUCCESS);
    MadeUpDriver::stack().clear();
    CHECK(Quiescence::in_context() == CUDA_ERROR_INVALID_CONTEXT);
}
