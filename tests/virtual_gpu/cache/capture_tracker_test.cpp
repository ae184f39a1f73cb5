// SPDX-License-Identifier: Apache-2.0
// Streams that are being captured: what is believed, what is asked of the driver, and what is left of a capture that
// fails to begin, of a stream that ends, and of a thread that leaves in the middle.
#include "virtual_gpu/cache/capture_tracker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <latch>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/sleeping.h"
#include "tests/virtual_gpu/cache/capture_scene.h"

using namespace cuslice;
using namespace cuslice::tests;
using By = CaptureTracker::By;

TEST_CASE("a capture that the driver refuses to begin leaves nothing known, and no other stream's is touched") {
    CaptureScene scene;
    scene.captures.may_begin(kOne, By::known);
    CHECK(scene.captures.any());
    scene.captures.failed(kOne);
    CHECK(scene.captures.none_known());
    CHECK(scene.captures.none_asked());
    scene.begin(kOther);
    scene.captures.may_begin(kOne, By::known);
    scene.captures.failed(kOne);
    CHECK(scene.captures.any_for_sure());
    scene.end(kOther);
    CHECK(scene.captures.none_known());
}

TEST_CASE("a second begin of a stream that is captured fails, and the first capture goes on") {
    CaptureScene scene;
    scene.begin(kOne);
    scene.captures.may_begin(kOne, By::known);
    scene.captures.failed(kOne);
    CHECK(scene.captures.any());
    CHECK(scene.captures.any_for_sure());
    scene.end(kOne);
    CHECK(scene.captures.none_known());
}

TEST_CASE("a capture that there is no memory to note isn't known, and the next one is") {
    CaptureScene scene;
    {
        const NoMemory none;
        scene.captures.may_begin(kOne, By::known);
        scene.captures.began(kOne);
    }
    CHECK(scene.captures.none_known());
    CHECK_FALSE(scene.captures.any_for_sure());
    scene.begin(kOne);
    CHECK(scene.captures.any());
}

TEST_CASE("without memory to note that a stream is asked about, it counts as captured, and its end waits for nobody") {
    CaptureScene scene;
    scene.begin(kOne);
    const unsigned before = scene.asked();
    scene.set(kOne, CU_STREAM_CAPTURE_STATUS_NONE);
    {
        const NoMemory none;
        CHECK(scene.captures.any_for_sure());
    }
    CHECK(scene.asked() == before);
    scene.captures.ends(kOne);
    scene.captures.ended_or_not(kOne, false, scene.captures.moment());
    CHECK_FALSE(scene.captures.any_for_sure());
}

TEST_CASE("the driver isn't asked as long as no capture is known") {
    CaptureScene scene;
    CHECK_FALSE(scene.captures.any());
    CHECK_FALSE(scene.captures.any_for_sure());
    CHECK(scene.captures.none_asked());
    CHECK(scene.driver.calls == 0);
}

TEST_CASE("of a capture that was seen to begin the driver is asked only for sure, and an end that nobody saw shows") {
    CaptureScene scene;
    scene.begin(kOne);
    const unsigned before = scene.asked();
    scene.set(kOne, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(scene.captures.any());
    CHECK(scene.asked() == before);
    CHECK_FALSE(scene.captures.any_for_sure());
    CHECK(scene.asked() == before + 1);
    CHECK(scene.captures.none_known());
    CHECK(scene.captures.none_asked());
}

TEST_CASE("of a capture by a function that isn't known the driver is asked each time") {
    CaptureScene scene;
    scene.begin(kOne, By::unknown);
    const unsigned before = scene.asked();
    CHECK(scene.captures.any());
    CHECK(scene.captures.any());
    CHECK(scene.asked() == before + 2);
    scene.set(kOne, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_FALSE(scene.captures.any());
    CHECK(scene.captures.none_known());
}

TEST_CASE("a capture that may have been begun again by a function that isn't known is asked about from then on") {
    CaptureScene scene;
    scene.begin(kOne);
    scene.captures.may_begin(kOne, By::unknown);
    scene.set(kOne, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_FALSE(scene.captures.any());
}

TEST_CASE("a capture that has been spoiled goes on until its stream's end is taken") {
    CaptureScene scene;
    scene.begin(kOne);
    scene.set(kOne, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(scene.captures.any_for_sure());
    scene.end(kOne);
    CHECK(scene.captures.none_known());
}

TEST_CASE(
    "a stream or a context that is no more is not captured, and whatever else the driver says counts as captured") {
    const CUresult says = GENERATE(CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_UNKNOWN,
                                   CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    const bool gone = says == CUDA_ERROR_INVALID_HANDLE || says == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    CaptureScene scene;
    scene.begin(kOne);
    scene.driver.say["cuStreamIsCapturing"] = says;
    CHECK(scene.captures.any_for_sure() == !gone);
    CHECK(scene.captures.none_known() == gone);
}

TEST_CASE("what another thread is about to begin counts as captured until the driver has said that it has begun") {
    CaptureScene scene;
    std::thread([&] { scene.captures.may_begin(kOne, By::known); }).join();
    CHECK(scene.captures.any_for_sure());  // not yet: the driver says none
    scene.set(kOne, kActive);
    CHECK(scene.captures.any_for_sure());
    scene.set(kOne, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_FALSE(scene.captures.any_for_sure());
}

TEST_CASE("the end of a capture doesn't end a later one of the same stream") {
    CaptureScene scene;
    scene.begin(kOne);
    const uint64_t first = scene.captures.moment();
    scene.begin(kOne);
    scene.captures.ended(kOne, first);
    CHECK(scene.captures.any());
    scene.captures.ended(kOne, scene.captures.moment());
    CHECK(scene.captures.none_known());
}

TEST_CASE("the default stream's handles are one stream, the thread's and the context's") {
    CaptureScene scene;
    const CUcontext beside = context(2);
    scene.driver.make(beside);
    scene.captures.may_begin(nullptr, By::known);
    // Another thread's is another stream by the same handle, and so is another context's.
    std::thread([&] {
        MadeUpDriver::stack() = {scene.own};
        scene.captures.ended(CU_STREAM_PER_THREAD, scene.captures.moment());
    }).join();
    CHECK_FALSE(scene.captures.none_known());
    MadeUpDriver::stack() = {beside};
    scene.captures.ended(CU_STREAM_PER_THREAD, scene.captures.moment());
    CHECK_FALSE(scene.captures.none_known());
    MadeUpDriver::stack() = {scene.own};
    scene.captures.ended(CU_STREAM_LEGACY, scene.captures.moment());
    CHECK(scene.captures.none_known());
}

TEST_CASE("another thread's default stream can't be asked about, and counts as captured until it is ended there") {
    CaptureScene scene;
    std::latch begun{1}, looked{1};
    std::thread other([&] {
        MadeUpDriver::stack() = {scene.own};
        scene.captures.may_begin(CU_STREAM_PER_THREAD, By::known);
        scene.captures.began(CU_STREAM_PER_THREAD);
        begun.count_down();
        looked.wait();
        scene.captures.ended(CU_STREAM_PER_THREAD, scene.captures.moment());
    });
    begun.wait();
    const unsigned before = scene.asked();
    CHECK(scene.captures.any_for_sure());
    CHECK(scene.asked() == before);
    looked.count_down();
    other.join();
    CHECK(scene.captures.none_known());
}

TEST_CASE("a context's end takes the captures of its streams, and no other") {
    CaptureScene scene;
    const CUcontext beside = context(2);
    scene.driver.make(beside);
    scene.driver.contexts_of_streams[kOther] = beside;
    scene.begin(kOne);
    scene.begin(kOther);
    scene.captures.context_ended(scene.own);
    CHECK(scene.captures.any_for_sure());
    scene.captures.context_ended(beside);
    CHECK(scene.captures.none_known());
}

TEST_CASE("a stream is asked about in its own context, which is not this thread's afterwards") {
    CaptureScene scene;
    scene.begin(kOne);
    const CUcontext beside = context(2);
    scene.driver.make(beside);
    MadeUpDriver::stack() = {beside};
    CUcontext seen = nullptr;
    scene.driver.meanwhile = [&](std::string_view function) {
        if (function == "cuStreamIsCapturing")
            seen = MadeUpDriver::stack().back();
    };
    CHECK(scene.captures.any_for_sure());
    CHECK(seen == scene.own);
    CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{beside});
    scene.driver.end(scene.own, false);
    scene.driver.meanwhile = nullptr;
    CHECK_FALSE(scene.captures.any_for_sure());  // its context can't be entered any more
    CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{beside});
}

TEST_CASE("the end of a stream waits for a thread that is asking about it, and for no other") {
    CaptureScene scene;
    scene.begin(kOne);
    std::latch asking{1}, go_on{1};
    std::atomic<bool> answered{false};
    scene.driver.meanwhile = [&](std::string_view function) {
        if (function != "cuStreamIsCapturing")
            return;
        asking.count_down();
        go_on.wait();
        answered = true;
    };
    std::thread asks([&] {
        MadeUpDriver::stack() = {scene.own};
        CHECK(scene.captures.any_for_sure());
    });
    asking.wait();
    CHECK_FALSE(scene.captures.none_asked());
    scene.captures.ends(kOther);  // nobody asks about that one
    std::atomic<pid_t> ender{0};
    bool waited = false;
    std::thread ends([&] {
        ender = this_thread();
        scene.captures.ends(kOne);
        waited = answered;
    });
    while (!ender)
        std::this_thread::yield();
    await_sleep(ender);
    CHECK_FALSE(answered);
    go_on.count_down();
    asks.join();
    ends.join();
    CHECK(waited);
}

TEST_CASE("a stream that is ending is asked about no more, and again if the driver doesn't end it after all") {
    CaptureScene scene;
    scene.begin(kOne);
    scene.set(kOne, CU_STREAM_CAPTURE_STATUS_NONE);
    scene.captures.ends(kOne);
    const unsigned before = scene.asked();
    CHECK(scene.captures.any_for_sure());
    CHECK(scene.asked() == before);
    SECTION("it is refused") {
        scene.captures.ended_or_not(kOne, false, scene.captures.moment());
        CHECK_FALSE(scene.captures.any_for_sure());
        CHECK(scene.asked() == before + 1);
    }
    SECTION("it has ended") {
        scene.captures.ended_or_not(kOne, true, scene.captures.moment());
        CHECK(scene.captures.none_known());
    }
}

TEST_CASE("a thread that has left a question by a longjmp asks nothing any more once that is forgotten") {
    static std::jmp_buf back;
    CaptureScene scene;
    scene.begin(kOne);
    scene.driver.meanwhile = [](std::string_view function) {
        if (function == "cuStreamIsCapturing")
            std::longjmp(back, 1);
    };
    if (setjmp(back) == 0)
        scene.captures.any_for_sure();
    scene.driver.meanwhile = nullptr;
    scene.end(kOne);
    CHECK_FALSE(scene.captures.none_asked());
    SECTION("told") { scene.captures.forget_own(); }
    SECTION("found when it comes back") {
        scene.begin(kOther);
        CHECK(scene.captures.any_for_sure());
        scene.end(kOther);
    }
    CHECK(scene.captures.none_asked());
    scene.captures.ends(kOne);
}

TEST_CASE("in a forked child nobody asks about a stream, whatever threads did in the parent") {
    CaptureScene scene;
    scene.begin(kOne);
    std::latch asking{1}, go_on{1};
    scene.driver.meanwhile = [&](std::string_view function) {
        if (function != "cuStreamIsCapturing")
            return;
        asking.count_down();
        go_on.wait();
    };
    std::thread asks([&] {
        MadeUpDriver::stack() = {scene.own};
        scene.captures.any_for_sure();
    });
    asking.wait();
    const pid_t child = fork();
    if (child == 0) {
        scene.captures.forget_all();
        scene.captures.ended(kOne, scene.captures.moment());
        if (!scene.captures.none_asked())
            _exit(1);
        scene.captures.ends(kOne);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK_FALSE(scene.captures.none_asked());  // the parent's thread still asks
    go_on.count_down();
    asks.join();
}

TEST_CASE("threads that capture and end streams see their own capture, and in the end none is left") {
    CaptureScene scene;
    std::atomic<unsigned> unseen{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            MadeUpDriver::stack() = {scene.own};
            const CUstream own = stream(10 + t);
            for (int i = 0; i < 300; i++) {
                scene.begin(own, i % 2 ? By::known : By::unknown);
                if (!scene.captures.any() || !scene.captures.any_for_sure())
                    unseen++;
                const uint64_t moment = scene.captures.moment();
                scene.captures.ends(own);
                scene.set(own, CU_STREAM_CAPTURE_STATUS_NONE);
                scene.captures.ended_or_not(own, i % 3 != 0, moment);
                if (i % 3 == 0)
                    scene.captures.ended(own, moment);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(unseen == 0);
    CHECK(scene.captures.none_known());
    CHECK(scene.captures.none_asked());
}
