// SPDX-License-Identifier: Apache-2.0
// The virtual context that is current in a thread, also after calls that the driver refuses.
#include "virtual_gpu/split/current_context.h"

#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/virtual_gpu/made_up_driver.h"
#include "tests/virtual_gpu/split/made_up_split.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// A context of each part of a GPU, and one of a GPU beside it.
struct Scene {
    Scene() {
        split_gpus();
        for (int device = 0; device < 3; device++)
            all.push_back(virtual_contexts().create(device, device < 2 ? kReal : kBeside, 0));
        driver.put(
            Function::cuCtxSetCurrent, +[](CUcontext one) -> CUresult {
                if (refuses)
                    return CUDA_ERROR_INVALID_CONTEXT;
                if (!MadeUpDriver::stack().empty())
                    MadeUpDriver::stack().pop_back();
                if (one)
                    MadeUpDriver::stack().push_back(one);
                return CUDA_SUCCESS;
            });
        refuses = false;
    }
    ~Scene() {
        CUcontext popped = nullptr;
        refuses = false;
        while (CurrentVirtual::pop(&popped) == CUDA_SUCCESS) {
        }
        for (VirtualContext* one : all)
            virtual_contexts().end(*one);
    }
    static VirtualContexts::Resolved of(VirtualContext* context) { return {context, context->real}; }
    void check_current(const VirtualContext* context) {
        CHECK(CurrentVirtual::get().context == context);
        CHECK(CurrentVirtual::handle() == context->handle());
        CHECK(CurrentVirtual::device() == context->device);
    }

    static inline bool refuses = false;
    static inline const CUcontext kReal = context(70), kBeside = context(71);
    MadeUpDriver driver;
    std::vector<VirtualContext*> all;
};

}  // namespace

TEST_CASE("what the driver refuses leaves the current virtual context, and all beneath it, as it was") {
    Scene scene;
    REQUIRE(CurrentVirtual::push(scene.of(scene.all[0])) == CUDA_SUCCESS);
    REQUIRE(CurrentVirtual::push(scene.of(scene.all[1])) == CUDA_SUCCESS);
    const std::vector<CUcontext> stack = MadeUpDriver::stack();
    Scene::refuses = true;
    scene.driver.say["cuCtxPushCurrent"] = CUDA_ERROR_INVALID_CONTEXT;
    CHECK(CurrentVirtual::set(scene.of(scene.all[2])) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(CurrentVirtual::set({}) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(CurrentVirtual::push(scene.of(scene.all[2])) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(MadeUpDriver::stack() == stack);
    scene.check_current(scene.all[1]);
    scene.driver.say.clear();
    CUcontext popped = nullptr;
    CHECK(CurrentVirtual::pop(&popped) == CUDA_SUCCESS);
    CHECK(popped == scene.all[1]->handle());
    scene.check_current(scene.all[0]);
}

TEST_CASE("a stack that there is no memory to note more of is as it was, and the driver isn't asked") {
    Scene scene;
    size_t depth = 0;
    CUresult result = CUDA_SUCCESS;
    {
        const NoMemory none;
        for (; depth < 100; depth++) {
            result = CurrentVirtual::push(scene.of(scene.all[depth % 2]));
            if (result != CUDA_SUCCESS)
                break;
        }
    }
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(depth > 1);
    CHECK(MadeUpDriver::stack().size() == depth);
    scene.check_current(scene.all[(depth - 1) % 2]);
    CHECK(CurrentVirtual::push(scene.of(scene.all[2])) == CUDA_SUCCESS);
    CHECK(MadeUpDriver::stack().size() == depth + 1);
}

TEST_CASE("a thread that has none pops none, and where the popped one is to be put is as it was") {
    Scene scene;
    CUcontext popped = context(0xdead);
    CHECK(CurrentVirtual::pop(&popped) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(popped == context(0xdead));
    CHECK(CurrentVirtual::get().context == nullptr);
    CHECK(CurrentVirtual::get().real == nullptr);
    CHECK(CurrentVirtual::handle() == nullptr);
    CHECK(CurrentVirtual::device() == -1);
}

TEST_CASE("contexts come off the stack as they went on, however deep, with or without a place for them") {
    Scene scene;
    constexpr size_t kDepth = 40;
    for (size_t i = 0; i < kDepth; i++) {
        REQUIRE(CurrentVirtual::push(scene.of(scene.all[i % 3])) == CUDA_SUCCESS);
        scene.check_current(scene.all[i % 3]);
    }
    for (size_t i = kDepth; i-- > 0;) {
        scene.check_current(scene.all[i % 3]);
        CUcontext popped = nullptr;
        REQUIRE(CurrentVirtual::pop(i % 2 ? &popped : nullptr) == CUDA_SUCCESS);
        if (i % 2)
            CHECK(popped == scene.all[i % 3]->handle());
    }
    CHECK(CurrentVirtual::handle() == nullptr);
}

TEST_CASE("setting replaces what is on top, and setting none takes it off") {
    Scene scene;
    REQUIRE(CurrentVirtual::push(scene.of(scene.all[0])) == CUDA_SUCCESS);
    REQUIRE(CurrentVirtual::push(scene.of(scene.all[1])) == CUDA_SUCCESS);
    REQUIRE(CurrentVirtual::set(scene.of(scene.all[2])) == CUDA_SUCCESS);
    scene.check_current(scene.all[2]);
    REQUIRE(CurrentVirtual::set({}) == CUDA_SUCCESS);
    scene.check_current(scene.all[0]);
}

TEST_CASE("a real context that somebody has made current beneath counts, and is shown as the driver knows it") {
    Scene scene;
    REQUIRE(CurrentVirtual::push(scene.of(scene.all[1])) == CUDA_SUCCESS);
    MadeUpDriver::stack().back() = context(99);
    CHECK(CurrentVirtual::get().context == nullptr);
    CHECK(CurrentVirtual::handle() == context(99));
    CHECK(to_virtual(context(99)) == context(99));
    MadeUpDriver::stack().back() = Scene::kReal;
    scene.check_current(scene.all[1]);
    CHECK(to_virtual(Scene::kReal) == scene.all[1]->handle());
    CHECK(to_virtual(static_cast<CUcontext>(nullptr)) == nullptr);
}

TEST_CASE("a physical GPU is shown as the part that this thread uses, else as the first part") {
    Scene scene;
    REQUIRE(CurrentVirtual::push(scene.of(scene.all[1])) == CUDA_SUCCESS);
    CHECK(to_virtual(CUdevice{0}) == 1);
    CHECK(to_virtual(CUdevice{1}) == 2);
    CHECK(to_virtual(CUdevice{7}) == -1);
    std::thread([] {
        CHECK(to_virtual(CUdevice{0}) == 0);
        CHECK(CurrentVirtual::device() == -1);
    }).join();
}
