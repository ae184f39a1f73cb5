// SPDX-License-Identifier: Apache-2.0
// Contexts that a program makes itself, and what becomes of them when the driver refuses something.
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;
using Uses = std::array<int, 2>;

namespace {

const CUcontext kUntouched = context(0xdead);

CUcontext asked_of = nullptr;
unsigned asked = 0;

CUresult destroy(CUcontext one) {
    asked++;
    asked_of = one;
    return one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

struct Scene : SplitScene {
    Scene() {
        asked = 0;
        asked_of = nullptr;
        driver.put(Function::cuCtxDestroy, destroy);
        driver.put(Function::cuCtxDestroy_v2, destroy);
        driver.put(Function::cuCtxDetach, destroy);
        driver.put(
            Function::cuCtxAttach, +[](CUcontext* into, unsigned) -> CUresult {
                if (!into || MadeUpDriver::stack().empty())
                    return CUDA_ERROR_INVALID_CONTEXT;
                *into = MadeUpDriver::stack().back();
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuCtxGetApiVersion, +[](CUcontext one, unsigned* version) -> CUresult {
                asked_of = one;
                *version = 3020;
                return one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
            });
        driver.put(
            Function::cuCtxGetId, +[](CUcontext one, unsigned long long* id) -> CUresult {
                asked_of = one;
                *id = 4;
                return one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
            });
        driver.put(
            Function::cuCtxGetDevice_v2, +[](CUdevice* gpu, CUcontext one) -> CUresult {
                asked_of = one;
                *gpu = one == real_of(1) ? 1 : 0;
                return one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
            });
        driver.put(
            Function::cuCtxGetFlags, +[](unsigned* flags) -> CUresult {
                *flags = CU_CTX_MAP_HOST | CU_CTX_SCHED_SPIN;
                return MadeUpDriver::stack().empty() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
            });
        driver.put(
            Function::cuCtxSetFlags,
            +[](unsigned flags) -> CUresult { return flags == 0x77 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; });
    }
};

}  // namespace

TEST_CASE("a context that is none of ours is the driver's to end, and a handle that means nothing is nobody's") {
    Scene scene;
    for (const auto end : {split_driver::cuCtxDestroy, split_driver::cuCtxDestroy_v2}) {
        CHECK(end(context(77)) == CUDA_SUCCESS);
        CHECK(asked_of == context(77));
        CHECK(end(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(asked_of == nullptr);
        asked = 0;
        const CUcontext made = scene.create(1);
        CHECK(end(made) == CUDA_SUCCESS);
        CHECK(end(made) == CUDA_ERROR_INVALID_CONTEXT);
        const auto inside = reinterpret_cast<CUcontext>(reinterpret_cast<uintptr_t>(made) + 8);
        CHECK(end(inside) == CUDA_ERROR_INVALID_CONTEXT);
        CUcontext primary = nullptr;
        REQUIRE(split_driver::cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
        CHECK(end(primary) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
        CHECK(asked == 0);
    }
}

TEST_CASE("a context is its physical GPU's primary one, once for each, and current where it was made") {
    Scene scene;
    const CUcontext first = scene.create(0), second = scene.create(1), beside = scene.create(2);
    CHECK(scene.uses == Uses{2, 1});
    CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{real_of(0), real_of(0), real_of(1)});
    CHECK(CurrentVirtual::handle() == beside);
    // The end of one that is current makes the one beneath it current.
    CHECK(split_driver::cuCtxDestroy_v2(beside) == CUDA_SUCCESS);
    CHECK(CurrentVirtual::handle() == second);
    CHECK(scene.uses == Uses{2, 0});
    CHECK(split_driver::cuCtxDestroy_v2(first) == CUDA_SUCCESS);
    CHECK(CurrentVirtual::handle() == second);
    CHECK(split_driver::cuCtxDestroy_v2(second) == CUDA_SUCCESS);
    { const LeftMemory left; }
    CHECK(scene.uses == Uses{0, 0});
}

TEST_CASE("a context that can't be made takes no use of the real one, and the caller's place is as it was") {
    Scene scene;
    CUcontext into = kUntouched;
    const auto refused = [&](CUresult expected, unsigned flags, CUdevice device) {
        CHECK(split_driver::cuCtxCreate_v2(&into, flags, device) == expected);
        CHECK(split_driver::cuCtxCreate(&into, flags, device) == expected);
        CHECK(split_driver::cuCtxCreate_v3(&into, nullptr, 0, flags, device) == expected);
        CHECK(split_driver::cuCtxCreate_v4(&into, nullptr, flags, device) == expected);
        CHECK(into == kUntouched);
        CHECK(scene.uses == Uses{0, 0});
        CHECK(MadeUpDriver::stack().empty());
        CHECK_FALSE(virtual_contexts().has_company(virtual_contexts().primary(0)));
    };
    refused(CUDA_ERROR_INVALID_DEVICE, 0, 3);
    refused(CUDA_ERROR_INVALID_DEVICE, 0, -1);
    refused(CUDA_ERROR_INVALID_VALUE, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD, 0);
    refused(CUDA_ERROR_INVALID_VALUE, CU_CTX_FLAGS_MASK + 1, 0);
    CHECK(split_driver::cuCtxCreate_v2(nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
    SplitScene::refusal = CUDA_ERROR_OUT_OF_MEMORY;
    refused(CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    SplitScene::refusal = CUDA_SUCCESS;
    scene.driver.say["cuCtxPushCurrent"] = CUDA_ERROR_UNKNOWN;
    refused(CUDA_ERROR_UNKNOWN, CU_CTX_SCHED_BLOCKING_SYNC, 1);
}

TEST_CASE("a context with a share of the multiprocessors, or of another API's queues, is refused") {
    Scene scene;
    CUcontext into = kUntouched;
    CUexecAffinityParam affinity{};
    CHECK(split_driver::cuCtxCreate_v3(&into, &affinity, 1, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    CHECK(split_driver::cuCtxCreate_v3(&into, nullptr, 1, 0, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(split_driver::cuCtxCreate_v3(&into, &affinity, -1, 0, 0) == CUDA_ERROR_INVALID_VALUE);
    CUctxCigParam queue{};
    CUctxCreateParams parameters{};
    parameters.cigParams = &queue;
    CHECK(split_driver::cuCtxCreate_v4(&into, &parameters, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
    parameters.execAffinityParams = &affinity;
    parameters.numExecAffinityParams = 1;
    CHECK(split_driver::cuCtxCreate_v4(&into, &parameters, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    CHECK(into == kUntouched);
    CHECK(scene.uses == Uses{0, 0});
    parameters = {};
    CHECK(split_driver::cuCtxCreate_v4(&into, &parameters, 0, 0) == CUDA_SUCCESS);
    scene.created.push_back(into);
    CHECK(split_driver::cuCtxCreate_v3(&into, nullptr, 0, 0, 1) == CUDA_SUCCESS);
    scene.created.push_back(into);
    CHECK(CurrentVirtual::device() == 1);
}

TEST_CASE("a context's API version is that of the form which made it, and its number is no other's") {
    Scene scene;
    CUcontext first = nullptr;
    REQUIRE(split_driver::cuCtxCreate(&first, 0, 0) == CUDA_SUCCESS);
    scene.created.push_back(first);
    const CUcontext second = scene.create(0);
    unsigned version = 0;
    const auto version_of = [&](CUcontext one) {
        return split_driver::cuCtxGetApiVersion(one, &version) == CUDA_SUCCESS ? version : 0;
    };
    CHECK(version_of(first) == 3010);
    CHECK(asked_of == real_of(0));
    CHECK(version_of(second) == 3020);
    CHECK(version_of(nullptr) == 3020);  // the current one
    CHECK(version_of(context(77)) == 3020);
    CHECK(asked_of == context(77));
    unsigned long long id = 0, other = 0;
    REQUIRE(split_driver::cuCtxGetId(first, &id) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuCtxGetId(second, &other) == CUDA_SUCCESS);
    CHECK(id != other);
    CHECK(id >> 63 == 1);
    REQUIRE(split_driver::cuCtxGetId(nullptr, &id) == CUDA_SUCCESS);
    CHECK(id == other);
    REQUIRE(split_driver::cuCtxGetId(context(77), &id) == CUDA_SUCCESS);
    CHECK(id == 4);  // the driver's own
    REQUIRE(split_driver::cuCtxDestroy_v2(first) == CUDA_SUCCESS);
    asked_of = kUntouched;
    CHECK(split_driver::cuCtxGetId(first, &id) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(split_driver::cuCtxGetApiVersion(first, &version) == CUDA_ERROR_INVALID_CONTEXT);
    CUdevice device = 0;
    CHECK(split_driver::cuCtxGetDevice_v2(&device, first) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(split_driver::cuCtxSetCurrent(first) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(split_driver::cuCtxPushCurrent_v2(first) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(asked_of == kUntouched);
    // A new context in the same place has nothing of the old one.
    const CUcontext again = scene.create(0);
    CHECK(version_of(again) == 3020);
}

TEST_CASE("how a thread waits is each context's own, and a refused change leaves it") {
    Scene scene;
    scene.create(0, CU_CTX_SCHED_YIELD);
    const CUcontext second = scene.create(1, CU_CTX_SCHED_BLOCKING_SYNC);
    unsigned flags = 0;
    REQUIRE(split_driver::cuCtxGetFlags(&flags) == CUDA_SUCCESS);
    CHECK(flags == (CU_CTX_MAP_HOST | CU_CTX_SCHED_BLOCKING_SYNC));
    CHECK(split_driver::cuCtxSetFlags(0x77) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(split_driver::cuCtxGetFlags(&flags) == CUDA_SUCCESS);
    CHECK(flags == (CU_CTX_MAP_HOST | CU_CTX_SCHED_BLOCKING_SYNC));
    CHECK(split_driver::cuCtxSetFlags(CU_CTX_SCHED_AUTO) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuCtxGetFlags(&flags) == CUDA_SUCCESS);
    CHECK(flags == CU_CTX_MAP_HOST);
    REQUIRE(split_driver::cuCtxDestroy_v2(second) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuCtxGetFlags(&flags) == CUDA_SUCCESS);
    CHECK(flags == (CU_CTX_MAP_HOST | CU_CTX_SCHED_YIELD));
    // One that isn't ours is as the driver says.
    REQUIRE(split_driver::cuCtxPushCurrent_v2(context(77)) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuCtxGetFlags(&flags) == CUDA_SUCCESS);
    CHECK(flags == (CU_CTX_MAP_HOST | CU_CTX_SCHED_SPIN));
    CHECK(split_driver::cuCtxSetFlags(CU_CTX_SCHED_SPIN) == CUDA_SUCCESS);
}

TEST_CASE("the GPU of a context is the virtual one, of another's context the first part") {
    Scene scene;
    const CUcontext second = scene.create(1), beside = scene.create(2);
    CUdevice device = -1;
    CHECK(split_driver::cuCtxGetDevice(&device) == CUDA_SUCCESS);
    CHECK(device == 2);
    CHECK(split_driver::cuCtxGetDevice_v2(&device, second) == CUDA_SUCCESS);
    CHECK(device == 1);
    CHECK(asked_of == real_of(0));
    CHECK(split_driver::cuCtxGetDevice_v2(&device, nullptr) == CUDA_SUCCESS);
    CHECK(device == 2);
    CHECK(split_driver::cuCtxGetDevice_v2(&device, context(77)) == CUDA_SUCCESS);
    CHECK(device == 0);
    REQUIRE(handle_registry().add(context(78), HandleKind::green_context, 1, 0));
    CHECK(split_driver::cuCtxGetDevice_v2(&device, context(78)) == CUDA_SUCCESS);
    CHECK(device == 1);
    REQUIRE(split_driver::cuCtxPushCurrent_v2(context(78)) == CUDA_SUCCESS);
    CHECK(split_driver::cuCtxGetDevice(&device) == CUDA_SUCCESS);
    CHECK(device == 1);
    handle_registry().remove(context(78), HandleKind::green_context);
    CHECK(split_driver::cuCtxGetDevice(&device) == CUDA_SUCCESS);
    CHECK(device == 0);
    CUcontext now = nullptr;
    CHECK(split_driver::cuCtxGetCurrent(&now) == CUDA_SUCCESS);
    CHECK(now == context(78));
    REQUIRE(split_driver::cuCtxPopCurrent_v2(&now) == CUDA_SUCCESS);
    CHECK(now == context(78));
    CHECK(split_driver::cuCtxGetCurrent(&now) == CUDA_SUCCESS);
    CHECK(now == beside);
}

TEST_CASE("a context that is attached to ends when it is detached from as often, and only where it is current") {
    Scene scene;
    const CUcontext made = scene.create(1);
    CUcontext attached = kUntouched;
    CHECK(split_driver::cuCtxAttach(&attached, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(attached == kUntouched);
    CHECK(split_driver::cuCtxAttach(nullptr, 0) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(split_driver::cuCtxAttach(&attached, 0) == CUDA_SUCCESS);
    CHECK(attached == made);
    const CUcontext above = scene.create(0);
    CHECK(split_driver::cuCtxDetach(made) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(split_driver::cuCtxDetach(above) == CUDA_SUCCESS);
    CHECK(split_driver::cuCtxDetach(above) == CUDA_ERROR_INVALID_CONTEXT);
    { const LeftMemory left; }
    CHECK(scene.uses == Uses{1, 0});
    CHECK(split_driver::cuCtxDetach(made) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{1, 0});
    CHECK(split_driver::cuCtxDetach(made) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{0, 0});
    CHECK(asked == 0);
    // A primary one, and none, are the driver's to answer for.
    CUcontext primary = nullptr;
    REQUIRE(split_driver::cuDevicePrimaryCtxRetain(&primary, 1) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuCtxPushCurrent_v2(primary) == CUDA_SUCCESS);
    CHECK(split_driver::cuCtxAttach(&attached, 0) == CUDA_SUCCESS);
    CHECK(attached == primary);
    CHECK(split_driver::cuCtxDetach(primary) == CUDA_SUCCESS);
    CHECK(asked_of == real_of(0));
    CHECK(split_driver::cuCtxDetach(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
}
