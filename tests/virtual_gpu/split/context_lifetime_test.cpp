// SPDX-License-Identifier: Apache-2.0
// The end of a virtual context whose real one lives on.
#include "virtual_gpu/split/context_lifetime.h"

#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;
using Uses = std::array<int, 2>;

namespace {

std::vector<const void*> destroyed;
std::vector<CUcontext> in;  // which context was current then

template <typename Handle>
CUresult destroy(Handle handle) {
    destroyed.push_back(handle);
    in.push_back(MadeUpDriver::stack().empty() ? nullptr : MadeUpDriver::stack().back());
    return CUDA_SUCCESS;
}

struct Scene : SplitScene {
    Scene() {
        destroyed.clear();
        in.clear();
        driver.put(Function::cuStreamDestroy_v2, destroy<CUstream>);
        driver.put(Function::cuModuleUnload, destroy<CUmodule>);
        driver.put(Function::cuArrayDestroy, destroy<CUarray>);
        driver.put(Function::cuMipmappedArrayDestroy, destroy<CUmipmappedArray>);
    }
    static uint64_t number_of(CUcontext handle) { return virtual_contexts().find(handle)->number; }
};

const void* made(uintptr_t number) { return tests::handle<const void*>(0x4000 + number); }

}  // namespace

TEST_CASE("what was made in a context goes with it, in its real one, after its work, and nothing else does") {
    Scene scene;
    const CUcontext stays = scene.create(0), ends = scene.create(1);
    scene.create(2);
    const std::vector<CUcontext> stack = MadeUpDriver::stack();
    uintptr_t next = 0;
    for (const HandleKind kind : {HandleKind::stream, HandleKind::module, HandleKind::array, HandleKind::mipmap}) {
        REQUIRE(handle_registry().add(made(next++), kind, 1, Scene::number_of(ends)));
        REQUIRE(handle_registry().add(made(next++), kind, 1, Scene::number_of(ends)));
        REQUIRE(handle_registry().add(made(100 + next), kind, 0, Scene::number_of(stays)));
    }
    bool waited = false;
    scene.driver.meanwhile = [&](std::string_view function) {
        if (function != "cuCtxSynchronize")
            return;
        waited = true;
        CHECK(destroyed.empty());
    };
    CHECK(split_driver::cuCtxDestroy_v2(ends) == CUDA_SUCCESS);
    scene.driver.meanwhile = nullptr;
    CHECK(waited);
    CHECK(scene.driver.waited_for == std::vector<CUcontext>{real_of(0)});
    REQUIRE(destroyed.size() == 8);
    for (uintptr_t i = 0; i < 8; i++) {
        CHECK(std::count(destroyed.begin(), destroyed.end(), made(i)) == 1);
        CHECK(in[i] == real_of(0));
    }
    CHECK(MadeUpDriver::stack() == stack);
    { const LeftMemory freed; }
    CHECK(split_driver::cuCtxDestroy_v2(stays) == CUDA_SUCCESS);  // the driver's context ends, and all with it
    CHECK(destroyed.size() == 8);
    for (uintptr_t i = 2; i <= 8; i += 2)
        for (const HandleKind kind : {HandleKind::stream, HandleKind::module, HandleKind::array, HandleKind::mipmap})
            handle_registry().remove(made(100 + i), kind);
}

TEST_CASE("what was made in the last context goes by itself while memory of another one is left in the real one") {
    Scene scene;
    const CUcontext last = scene.create(0), ends = scene.create(1);
    REQUIRE(handle_registry().add(made(1), HandleKind::stream, 0, Scene::number_of(last)));
    REQUIRE(split_driver::cuCtxDestroy_v2(ends) == CUDA_SUCCESS);
    CHECK(memory_is_left(0));
    CHECK_FALSE(memory_is_left(1));
    REQUIRE(split_driver::cuCtxDestroy_v2(last) == CUDA_SUCCESS);
    CHECK(destroyed == std::vector<const void*>{made(1)});
    CHECK(LeftMemory());
    CHECK_FALSE(memory_is_left(0));
    CHECK(scene.uses == Uses{0, 0});
}

TEST_CASE("where the real context can't be made current nothing is destroyed in another one") {
    Scene scene;
    scene.create(0);
    const CUcontext ends = scene.create(1);
    REQUIRE(handle_registry().add(made(1), HandleKind::stream, 1, Scene::number_of(ends)));
    scene.driver.say["cuCtxPushCurrent"] = CUDA_ERROR_UNKNOWN;
    end_what_was_made(*virtual_contexts().find(ends));
    CHECK(destroyed.empty());
    CHECK(handle_registry().find(made(1), HandleKind::stream).known);
    handle_registry().remove(made(1), HandleKind::stream);
}

TEST_CASE("the memory of a context that has ended is left once, in the real one, which is given up then") {
    Scene scene;
    const CUcontext stays = scene.create(0), ends = scene.create(1);
    REQUIRE(scene.uses == Uses{2, 0});
    const std::vector<CUcontext> stack{real_of(0)};
    REQUIRE(split_driver::cuCtxDestroy_v2(ends) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{2, 0});
    {
        const LeftMemory left;
        CHECK(left);
        CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{real_of(0), real_of(0)});
        CHECK(scene.uses == Uses{2, 0});
    }
    CHECK(scene.uses == Uses{1, 0});
    CHECK(MadeUpDriver::stack() == stack);
    {
        const LeftMemory nothing;
        CHECK_FALSE(nothing);
        CHECK(MadeUpDriver::stack() == stack);
    }
    CHECK(scene.uses == Uses{1, 0});
    // The last one takes its memory with it.
    REQUIRE(split_driver::cuCtxDestroy_v2(stays) == CUDA_SUCCESS);
    CHECK_FALSE(LeftMemory());
    CHECK(scene.uses == Uses{0, 0});
}

TEST_CASE("memory that nobody has asked for is given up with the end of the next context") {
    Scene scene;
    scene.create(0);
    const CUcontext one = scene.create(1), other = scene.create(1), beside = scene.create(2), last = scene.create(2);
    REQUIRE(scene.uses == Uses{3, 2});
    REQUIRE(split_driver::cuCtxDestroy_v2(one) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{3, 2});
    REQUIRE(split_driver::cuCtxDestroy_v2(other) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{2, 2});
    REQUIRE(split_driver::cuCtxDestroy_v2(beside) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{1, 2});
    {
        const LeftMemory left;
        CHECK(MadeUpDriver::stack().back() == real_of(1));
    }
    CHECK(scene.uses == Uses{1, 1});
    REQUIRE(split_driver::cuCtxDestroy_v2(last) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{1, 0});
}

TEST_CASE("memory in a real context that can't be made current isn't freed, and its use is given up all the same") {
    Scene scene;
    scene.create(0);
    const CUcontext ends = scene.create(1);
    REQUIRE(split_driver::cuCtxDestroy_v2(ends) == CUDA_SUCCESS);
    scene.driver.say["cuCtxPushCurrent"] = CUDA_ERROR_UNKNOWN;
    const std::vector<CUcontext> stack = MadeUpDriver::stack();
    CHECK_FALSE(LeftMemory());
    CHECK(MadeUpDriver::stack() == stack);
    CHECK(scene.uses == Uses{1, 0});
}
