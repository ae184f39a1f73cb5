// SPDX-License-Identifier: Apache-2.0
// Each virtual GPU's primary context: a share in the physical one's.
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;
using Uses = std::array<int, 2>;

namespace {

const CUcontext kUntouched = context(0xdead);

CUcontext retain(CUdevice device) {
    CUcontext context = kUntouched;
    return split_driver::cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS ? context : nullptr;
}

struct State {
    unsigned flags = 77;
    int active = 77;
    bool operator==(const State&) const = default;
};
State state(CUdevice device) {
    State now;
    CHECK(split_driver::cuDevicePrimaryCtxGetState(device, &now.flags, &now.active) == CUDA_SUCCESS);
    return now;
}

using End = CUresult(CUdevice);
const std::vector<End*> kReleases{split_driver::cuDevicePrimaryCtxRelease, split_driver::cuDevicePrimaryCtxRelease_v2};
const std::vector<End*> kResets{split_driver::cuDevicePrimaryCtxReset, split_driver::cuDevicePrimaryCtxReset_v2};

}  // namespace

TEST_CASE("a primary context holds its real one once, however often it is retained") {
    SplitScene scene;
    for (End* const release : kReleases) {
        const CUcontext first = retain(0), second = retain(1), beside = retain(2);
        CHECK(first == real_of(0));
        CHECK(second != real_of(0));
        CHECK(beside == real_of(1));
        CHECK(retain(1) == second);
        CHECK(scene.uses == Uses{2, 1});
        CHECK(release(1) == CUDA_SUCCESS);
        CHECK(state(1).active == 1);
        CHECK(release(1) == CUDA_SUCCESS);
        CHECK(state(1).active == 0);
        CHECK(release(1) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(scene.uses == Uses{2, 1});
        CHECK(LeftMemory());
        CHECK(scene.uses == Uses{1, 1});
        CHECK(release(0) == CUDA_SUCCESS);
        CHECK_FALSE(LeftMemory());
        CHECK(release(2) == CUDA_SUCCESS);
        CHECK(scene.uses == Uses{0, 0});
    }
}

TEST_CASE("what the driver refuses of a primary context leaves it as it was") {
    SplitScene scene;
    CUcontext into = kUntouched;
    CHECK(split_driver::cuDevicePrimaryCtxRetain(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(split_driver::cuDevicePrimaryCtxRetain(&into, 3) == CUDA_ERROR_INVALID_DEVICE);
    SplitScene::refusal = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(split_driver::cuDevicePrimaryCtxRetain(&into, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    SplitScene::refusal = CUDA_SUCCESS;
    CHECK(state(1).active == 0);
    CHECK(virtual_contexts().primary(1).uses == 0u);
    const CUcontext second = retain(1);
    SplitScene::refusal = CUDA_ERROR_UNKNOWN;
    for (End* const end : {kReleases[0], kReleases[1], kResets[0], kResets[1]})
        CHECK(end(1) == CUDA_ERROR_UNKNOWN);
    SplitScene::refusal = CUDA_SUCCESS;
    CHECK(state(1).active == 1);
    CHECK(virtual_contexts().resolve(second).real == real_of(0));
    CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{0, 0});
    for (End* const end : {kReleases[0], kReleases[1], kResets[0], kResets[1]})
        CHECK(end(3) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("a reset of the only primary context in use is the driver's, and the next retain begins it anew") {
    SplitScene scene;
    int resets = 0;
    for (End* const reset : kResets) {
        CHECK(reset(1) == CUDA_SUCCESS);  // of none: nothing happens
        CHECK(scene.resets[0] == resets);
        const CUcontext second = retain(1);
        const uint64_t number = virtual_contexts().find(second)->number;
        CHECK(reset(1) == CUDA_SUCCESS);
        CHECK(scene.resets[0] == ++resets);
        CHECK(scene.uses == Uses{0, 0});
        CHECK(state(1).active == 0);
        CHECK(virtual_contexts().resolve(second).real == nullptr);
        // The use outlives it.
        CHECK(retain(1) == second);
        CHECK(virtual_contexts().find(second)->number != number);
        CHECK(scene.uses == Uses{1, 0});
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
        CHECK(state(1).active == 1);
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
        CHECK(scene.uses == Uses{0, 0});
    }
}

TEST_CASE("a reset of one of several takes what is its own, and leaves the driver's to the others") {
    SplitScene scene;
    for (End* const reset : kResets) {
        retain(0), retain(1);
        REQUIRE(handle_registry().add(stream(400), HandleKind::stream, 1, virtual_contexts().primary(1).number));
        static unsigned destroyed;
        destroyed = 0;
        scene.driver.put(
            Function::cuStreamDestroy_v2, +[](CUstream) -> CUresult {
                destroyed++;
                return CUDA_SUCCESS;
            });
        CHECK(reset(1) == CUDA_SUCCESS);
        CHECK(destroyed == 1);
        CHECK(scene.resets == Uses{0, 0});
        CHECK(scene.uses == Uses{2, 0});
        CHECK(LeftMemory());
        CHECK(scene.uses == Uses{1, 0});
        CHECK(state(1).active == 0);
        CHECK(state(0).active == 1);
        // Its use is there yet, and gives up nothing of the driver's.
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(scene.uses == Uses{1, 0});
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
    }
}

TEST_CASE("flags are set for each virtual GPU, before its context begins and while it lives") {
    SplitScene scene;
    for (const auto set : {split_driver::cuDevicePrimaryCtxSetFlags, split_driver::cuDevicePrimaryCtxSetFlags_v2}) {
        CHECK(set(1, CU_CTX_SCHED_SPIN) == CUDA_SUCCESS);
        CHECK(state(1) == State{CU_CTX_SCHED_SPIN, 0});
        CHECK(state(0) == State{0, 0});
        CHECK(scene.preset[0] == CU_CTX_SCHED_SPIN);
        retain(1);
        CHECK(virtual_contexts().primary(1).flags == unsigned{CU_CTX_SCHED_SPIN});
        CHECK(set(1, CU_CTX_SCHED_YIELD) == CUDA_SUCCESS);
        CHECK(state(1) == State{CU_CTX_SCHED_YIELD, 1});
        CHECK(virtual_contexts().primary(1).flags == unsigned{CU_CTX_SCHED_YIELD});
        CHECK(set(1, 0x1000) == CUDA_ERROR_INVALID_VALUE);
        CHECK(state(1) == State{CU_CTX_SCHED_YIELD, 1});
        CHECK(set(3, 0) == CUDA_ERROR_INVALID_DEVICE);
        CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
    }
    State none;
    CHECK(split_driver::cuDevicePrimaryCtxGetState(3, &none.flags, &none.active) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(none == State{});
    CHECK(split_driver::cuDevicePrimaryCtxSetFlags_v2(1, 0) == CUDA_SUCCESS);
}

TEST_CASE("a primary context that the runtime has made unseen is the first part's, whoever asks") {
    SplitScene scene;
    SplitScene::uses[0] = 1;
    CHECK(state(0).active == 1);
    CHECK(state(1).active == 0);
    CHECK(scene.uses == Uses{2, 0});
    CHECK(state(0).active == 1);
    CHECK(scene.uses == Uses{2, 0});
    // A program's own use comes to the runtime's.
    CHECK(retain(0) == real_of(0));
    CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
    CHECK(state(0).active == 1);
}

TEST_CASE("one that was made unseen is beside another part's that begins") {
    SplitScene scene;
    SplitScene::uses[0] = 1;
    SECTION("as a primary one") { CHECK(retain(1) != nullptr); }
    SECTION("as one of the program's") { CHECK(scene.create(1) != nullptr); }
    CHECK(virtual_contexts().primary(0).lives);
    CHECK(scene.uses == Uses{3, 0});
}

TEST_CASE("a thread that uses a real context without a part's begins the first part's") {
    SplitScene scene;
    retain(1);
    MadeUpDriver::stack().push_back(real_of(0));
    SECTION("for any call") { CHECK(CurrentVirtual::get().context == &virtual_contexts().primary(0)); }
    SECTION("for the state") { CHECK(state(0).active == 1); }
    SECTION("for a retain") { CHECK(retain(0) == real_of(0)); }
    SECTION("for a reset") { CHECK(split_driver::cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS); }
    SECTION("and not where the program has ended that") {
        retain(0);
        CHECK(split_driver::cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
        { const LeftMemory left; }
        CHECK(CurrentVirtual::get().context == nullptr);
        CHECK(state(0).active == 0);
    }
    MadeUpDriver::stack().pop_back();
    { const LeftMemory left; }
    SplitScene::uses = {};
}

TEST_CASE("a context that the runtime has reset is begun by its next use, and not by those who ask for its state") {
    SplitScene scene;
    retain(0);
    const CUcontext second = retain(1);
    VirtualContext& context = *virtual_contexts().find(second);
    CHECK(split_driver::cuCtxSetCurrent(second) == CUDA_SUCCESS);
    CHECK(split_driver::cuDevicePrimaryCtxReset_v2(1) == CUDA_SUCCESS);
    CHECK(scene.uses == Uses{2, 0});
    virtual_contexts().expect_use(context);
    CHECK(CurrentVirtual::get().context == &context);
    CHECK_FALSE(context.lives);  // its memory isn't freed yet
    { const LeftMemory left; }
    CHECK(state(1).active == 0);
    CHECK(scene.uses == Uses{1, 0});
    CHECK(CurrentVirtual::get().context == &context);
    CHECK(state(1).active == 1);
    CHECK(scene.uses == Uses{2, 0});
    // With the use that outlived the reset.
    CHECK(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
    { const LeftMemory left; }
    CHECK(state(1).active == 0);
    CHECK(CurrentVirtual::get().context == &context);
    CHECK(state(1).active == 0);
}

TEST_CASE("a real context that isn't a GPU's primary one begins nothing") {
    SplitScene scene;
    MadeUpDriver::stack().push_back(context(99));
    CHECK(CurrentVirtual::get().context == nullptr);
    SplitScene::uses[0] = 1;
    CHECK(CurrentVirtual::get().context == nullptr);
    CHECK(scene.uses == Uses{1, 0});
    MadeUpDriver::stack().pop_back();
}
