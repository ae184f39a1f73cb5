// SPDX-License-Identifier: Apache-2.0
// Threads that meet where one captures a stream into a graph: no call of cuslice's ends the capture, and nobody gets a
// block that the GPU may still touch.
#include "virtual_gpu/cache/capture_tracker.h"

#include "tests/virtual_gpu/interleave/scene.h"

namespace cuslice::tests {
namespace {

using Modes = MadeUpGpu::Modes;
using By = CaptureTracker::By;

constexpr uint64_t kSmall = 4096;

struct CaptureScene : Scene {
    explicit CaptureScene(FreeMode mode, Modes modes) : Scene(mode, modes) { driver.make_stream(kStream, one); }
    void check() {
        REQUIRE_FALSE(caches.captures().any_for_sure());
        Scene::check();
    }
    static inline const CUstream kStream = stream(1);
};

// A thread frees what the GPU still works with, and allocates, while another begins a capture and ends it.
template <FreeMode kMode, Modes kModes>
struct BeginsAndEnds : CaptureScene {
    BeginsAndEnds() : CaptureScene(kMode, kModes) {}
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        free(allocate(cache, kMiB));  // a segment
        return {thread(one,
                       [this, &cache] {
                           for (const uint64_t bytes : {kSmall, kMiB, kMiB})
                               use_and_free(one, allocate(cache, bytes), bytes);
                       }),
                thread(one,
                       [this] {
                           begin_capture(kStream);
                           end_capture(kStream);
                       }),
                thread(one, [this] { driver.pass(); })};
    }
};
struct StrictInCapture : BeginsAndEnds<FreeMode::strict, Modes::none> {};
struct DeferredInCapture : BeginsAndEnds<FreeMode::deferred, Modes::none> {};
struct StrictInRelaxed : BeginsAndEnds<FreeMode::strict, Modes::some> {};
struct DeferredInRelaxed : BeginsAndEnds<FreeMode::deferred, Modes::some> {};

// A capture ends while another thread, at the limit, asks for what was freed in the midst of it.
template <Modes kModes>
struct EndsAtTheLimit : CaptureScene {
    EndsAtTheLimit() : CaptureScene(FreeMode::deferred, kModes) {}
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        const uint64_t block = allocate(cache, kMost);
        begin_capture(kStream);
        return {thread(one,
                       [this, &cache, block] {
                           use_and_free(one, block, kMost);
                           if (const uint64_t next = allocate(cache, kMost + 4 * kMiB))
                               free(next);
                       }),
                thread(one, [this] { end_capture(kStream); }), thread(one, [this] { driver.pass(); })};
    }
    static constexpr uint64_t kMost = 40 * kMiB;
};
struct EndsAtTheLimitInCapture : EndsAtTheLimit<Modes::none> {};
struct EndsAtTheLimitInRelaxed : EndsAtTheLimit<Modes::some> {};

// Streams end in the midst of captures, and others get their handle, while a thread asks whether they are captured.
struct StreamsEnd : CaptureScene {
    StreamsEnd() : CaptureScene(FreeMode::deferred, Modes::none) {}
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        free(allocate(cache, kMiB));
        return {thread(one,
                       [this] {
                           for (int i = 0; i < 2; i++) {
                               begin_capture(kStream);
                               destroy();
                               driver.make_stream(kStream, one);
                           }
                       }),
                thread(one, [this, &cache] {
                    use_and_free(one, allocate(cache, kMiB), kMiB);
                    caches.trim(gpu, ~0ull);
                })};
    }
    void destroy() {
        CaptureTracker& captures = caches.captures();
        const uint64_t moment = captures.moment();
        captures.ends(kStream);
        driver.destroy_stream(kStream);
        captures.ended_or_not(kStream, true, moment);
    }
};

// Captures of which only the beginning is seen, as a function that cuslice doesn't know ends them.
struct EndsUnseen : CaptureScene {
    EndsUnseen() : CaptureScene(FreeMode::deferred, Modes::none) {}
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        free(allocate(cache, kMiB));
        return {thread(one,
                       [this] {
                           caches.captures().may_begin(kStream, By::unknown);
                           driver.begin_capture(kStream);
                           driver.end_capture(kStream);
                       }),
                thread(one, [this, &cache] {
                    use_and_free(one, allocate(cache, kMiB), kMiB);
                    caches.trim(gpu, ~0ull);
                })};
    }
    // Where the driver was asked before it had begun, it counts as going on: until another one of the stream has ended.
    void check() {
        begin_capture(kStream);
        end_capture(kStream);
        CaptureScene::check();
    }
};

// A context ends with the stream that is captured in it.
struct ContextEnds : CaptureScene {
    ContextEnds() : CaptureScene(FreeMode::deferred, Modes::none) {
        begin(other);
        driver.make_stream(kOfOther, other);
    }
    Bodies bodies() {
        ContextAllocator& cache = cache_of(one);
        free(allocate(cache, kMiB));
        return {thread(other,
                       [this] {
                           begin_capture(kOfOther);
                           end(other);
                       }),
                thread(one, [this, &cache] {
                    use_and_free(one, allocate(cache, kMiB), kMiB);
                    caches.trim(gpu, ~0ull);
                })};
    }
    static inline const CUstream kOfOther = stream(2);
};

}  // namespace

TEST_CASE("interleaved: a capture begins and ends beside frees that wait for the GPU") { explore<StrictInCapture>(); }
TEST_CASE("interleaved: a capture begins and ends beside deferred frees") { explore<DeferredInCapture>(); }
TEST_CASE("interleaved: a capture that can be relaxed begins and ends beside frees that wait for the GPU") {
    explore<StrictInRelaxed>();
}
TEST_CASE("interleaved: a capture that can be relaxed begins and ends beside deferred frees") {
    explore<DeferredInRelaxed>();
}
TEST_CASE("interleaved: a capture ends as a thread asks at the limit for what was freed in it") {
    explore<EndsAtTheLimitInCapture>();
}
TEST_CASE("interleaved: a capture that can be relaxed ends as a thread asks at the limit for what was freed in it") {
    explore<EndsAtTheLimitInRelaxed>();
}
TEST_CASE("interleaved: captured streams end while a thread asks whether they are captured") { explore<StreamsEnd>(); }
TEST_CASE("interleaved: a capture ends unseen while a thread asks whether it goes on") { explore<EndsUnseen>(); }
TEST_CASE("interleaved: a context ends with a captured stream beside frees in another one") { explore<ContextEnds>(); }

}  // namespace cuslice::tests
