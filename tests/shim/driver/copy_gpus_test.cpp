// SPDX-License-Identifier: Apache-2.0
// GPUs that take part in a copy, for all of which a free of its memory waits afterwards.
#include "shim/driver/copy_gpus.h"

#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

// A block of a GPU, which is current, and one of another. What has been copied is known for good, so each test has GPUs
// of its own.
struct Scene {
    Scene(CUdevice gpu, CUdevice beside) : first(Within::use(gpu)), block(Within::allocate(kBytes)) {
        second = Within::use(beside);
        other = Within::allocate(kBytes);
        REQUIRE(cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
        REQUIRE(cuCtxSetCurrent(first) == CUDA_SUCCESS);
        REQUIRE(reaching_first() == 1);
    }
    ~Scene() {
        cuStreamDestroy_v2(stream);
        cuMemFree_v2(block);
        cuMemFree_v2(other);
    }
    /// The contexts whose work can touch a context's block.
    static size_t reaching(CUcontext context, CUdeviceptr address) {
        CUcontext found[Reach::kMaxContexts];
        return process().caches().reach().list(gpu_state().contexts, context, address, found, Reach::kMaxContexts);
    }
    size_t reaching_first() const { return reaching(first, block); }

    static constexpr size_t kBytes = 1 << 16;
    CUcontext first, second = nullptr;
    CUdeviceptr block, other = 0;
    CUstream stream = nullptr;
};

}  // namespace

TEST_CASE("of a function's arguments the last that is a stream is the copy's") {
    const auto one = reinterpret_cast<CUstream>(1), two = reinterpret_cast<CUstream>(2);
    CHECK(stream_among(1, 2ull, static_cast<void*>(nullptr)) == nullptr);
    CHECK(stream_among(1, one) == one);
    CHECK(stream_among(one, 1, two, 3) == two);
}

TEST_CASE("a copy within one GPU concerns no other") {
    const Within within(kCached);
    if (!within)
        return;
    const Scene scene(0, 1);
    {
        const CopyGpus gpus(nullptr);
        CopyGpus::note(scene.block);
        CopyGpus::note(scene.block);
        CopyGpus::note(0x1000);  // no cache's
    }
    CHECK(scene.reaching_first() == 1);
    {
        // Noted after all is over: of no copy.
        CopyGpus::note(scene.other);
        const CopyGpus gpus(nullptr);
        CopyGpus::note(scene.block);
    }
    CHECK(scene.reaching_first() == 1);
}

TEST_CASE("a copy between GPUs concerns both") {
    const Within within(kCached);
    if (!within)
        return;
    const Scene scene(0, 1);
    {
        const CopyGpus gpus(nullptr);
        CopyGpus::note(scene.block);
        CopyGpus::note(scene.other);
    }
    CHECK(scene.reaching_first() == 2);
    CHECK(Scene::reaching(scene.second, scene.other) == 2);
}

TEST_CASE("so does one that a GPU carries out for another, whose stream it is given") {
    const Within within(kCached);
    if (!within)
        return;
    const Scene scene(2, 3);
    {
        const CopyGpus gpus(scene.stream);
        CopyGpus::note(scene.block);
    }
    CHECK(scene.reaching_first() == 2);
}

TEST_CASE("the default streams are the current context's") {
    const Within within(kCached);
    if (!within)
        return;
    const Scene scene(4, 5);
    const auto copy_on = [&](CUstream stream) {
        const CopyGpus gpus(stream);
        CopyGpus::note(scene.block);
    };
    for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD})
        copy_on(stream);
    CHECK(scene.reaching_first() == 1);
    size_t reaching = 1;
    CUdevice gpu = 5;
    for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
        Within::use(gpu++);
        copy_on(stream);
        CHECK(scene.reaching_first() == ++reaching);
    }
}
