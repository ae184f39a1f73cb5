// SPDX-License-Identifier: Apache-2.0
// Green contexts of virtual GPUs: each uses the virtual GPU's primary context.
#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;
using Uses = std::array<int, 2>;

namespace {

CUgreenCtx green(uintptr_t number) { return tests::handle<CUgreenCtx>(0x7000 + number); }

uintptr_t made = 0;
CUdevice made_on = -1;
std::vector<CUgreenCtx> destroyed;
CUresult answer = CUDA_SUCCESS;  // of everything that is asked of a green context

struct Scene : SplitScene {
    Scene() {
        made = 0;
        made_on = -1;
        destroyed.clear();
        answer = CUDA_SUCCESS;
        driver.put(
            Function::cuGreenCtxCreate, +[](CUgreenCtx* into, CUdevResourceDesc, CUdevice gpu, unsigned) -> CUresult {
                if (!into)
                    return CUDA_ERROR_INVALID_VALUE;
                made_on = gpu;
                *into = green(++made);
                return answer;
            });
        driver.put(
            Function::cuGreenCtxDestroy, +[](CUgreenCtx one) -> CUresult {
                if (answer == CUDA_SUCCESS)
                    destroyed.push_back(one);
                return answer;
            });
        driver.put(
            Function::cuCtxFromGreenCtx, +[](CUcontext* into, CUgreenCtx one) -> CUresult {
                *into = context_of(one);
                return answer;
            });
        driver.put(
            Function::cuGreenCtxStreamCreate, +[](CUstream* into, CUgreenCtx, unsigned, int) -> CUresult {
                *into = stream(300);
                return answer;
            });
    }
    ~Scene() {
        for (uintptr_t number = 1; number <= made; number++)
            handle_registry().remove(green(number), HandleKind::green);
        handle_registry().remove(stream(300), HandleKind::stream);
    }
    static CUcontext context_of(CUgreenCtx one) {
        return reinterpret_cast<CUcontext>(reinterpret_cast<uintptr_t>(one) + (1 << 24));
    }
    static CUresult create(CUgreenCtx* into, CUdevice device) {
        return split_driver::cuGreenCtxCreate(into, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM);
    }
};

}  // namespace

TEST_CASE("a green context is on the physical GPU, and uses its virtual GPU's primary context as long as it lives") {
    Scene scene;
    CUgreenCtx one = nullptr;
    REQUIRE(scene.create(&one, 1) == CUDA_SUCCESS);
    CHECK(one == green(1));
    CHECK(made_on == 0);
    CHECK(scene.uses == Uses{1, 0});
    CHECK(virtual_contexts().primary(1).uses == 1u);
    CHECK_FALSE(virtual_contexts().primary(0).lives);

    CUcontext context = nullptr;
    REQUIRE(split_driver::cuCtxFromGreenCtx(&context, one) == CUDA_SUCCESS);
    CHECK(handle_registry().find(context, HandleKind::green_context).device == 1);
    CUstream made_in = nullptr;
    REQUIRE(split_driver::cuGreenCtxStreamCreate(&made_in, one, 0, 0) == CUDA_SUCCESS);
    CHECK(handle_registry().find(made_in, HandleKind::stream).known);
    CHECK(handle_registry().find(made_in, HandleKind::stream).device == 1);

    answer = CUDA_ERROR_INVALID_CONTEXT;
    CHECK(split_driver::cuGreenCtxDestroy(one) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(handle_registry().find(one, HandleKind::green).known);
    CHECK(handle_registry().find(context, HandleKind::green_context).known);
    CHECK(scene.uses == Uses{1, 0});
    answer = CUDA_SUCCESS;
    CHECK(split_driver::cuGreenCtxDestroy(one) == CUDA_SUCCESS);
    CHECK_FALSE(handle_registry().find(one, HandleKind::green).known);
    CHECK_FALSE(handle_registry().find(context, HandleKind::green_context).known);
    CHECK(scene.uses == Uses{0, 0});
    CHECK_FALSE(virtual_contexts().primary(1).lives);
}

TEST_CASE("a green context that the driver refuses is none, and uses nothing") {
    Scene scene;
    CUgreenCtx into = green(77);
    answer = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;  // though it has written something
    CHECK(scene.create(&into, 1) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    answer = CUDA_SUCCESS;
    CHECK(scene.create(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
    // The primary context can't be had.
    SplitScene::refusal = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(scene.create(&into, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(destroyed == std::vector<CUgreenCtx>{green(2)});
    CHECK(into == green(77));
    CHECK(scene.uses == Uses{0, 0});
    CHECK(virtual_contexts().primary(1).uses == 0u);
}

TEST_CASE("a green context that there is no memory to note is destroyed, and its primary context given up") {
    Scene scene;
    CUgreenCtx into = nullptr;
    CUresult result = CUDA_SUCCESS;
    unsigned there = 0;
    // Until the registry would have to grow.
    for (; result == CUDA_SUCCESS && there < 10'000; there++) {
        into = green(0);
        const NoMemory none;
        result = scene.create(&into, 1);
    }
    there--;
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == green(0));
    CHECK(destroyed == std::vector<CUgreenCtx>{green(made)});
    CHECK(virtual_contexts().primary(1).uses == there);
    CHECK_FALSE(handle_registry().find(green(made), HandleKind::green).known);
    CHECK(scene.create(&into, 1) == CUDA_SUCCESS);
    CHECK(into == green(made));
}

TEST_CASE("a green context of another's is left alone, and what the driver doesn't answer isn't noted") {
    Scene scene;
    CUcontext context = nullptr;
    CUstream made_in = nullptr;
    CHECK(split_driver::cuCtxFromGreenCtx(&context, green(50)) == CUDA_SUCCESS);
    CHECK_FALSE(handle_registry().find(context, HandleKind::green_context).known);
    CHECK(split_driver::cuGreenCtxStreamCreate(&made_in, green(50), 0, 0) == CUDA_SUCCESS);
    CHECK_FALSE(handle_registry().find(made_in, HandleKind::stream).known);
    CHECK(split_driver::cuGreenCtxDestroy(green(50)) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{0, 0});

    CUgreenCtx one = nullptr;
    REQUIRE(scene.create(&one, 0) == CUDA_SUCCESS);
    answer = CUDA_ERROR_NOT_SUPPORTED;
    CHECK(split_driver::cuCtxFromGreenCtx(&context, one) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK_FALSE(handle_registry().find(context, HandleKind::green_context).known);
    CHECK(split_driver::cuGreenCtxStreamCreate(&made_in, one, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK_FALSE(handle_registry().find(made_in, HandleKind::stream).known);
}
