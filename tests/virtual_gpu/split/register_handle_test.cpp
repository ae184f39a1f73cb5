// SPDX-License-Identifier: Apache-2.0
// Objects that the driver makes in a real context belong to a virtual one: they are noted, or not made at all.
#include "virtual_gpu/split/register_handle.h"

#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/virtual_gpu/made_up_driver.h"
#include "tests/virtual_gpu/split/made_up_split.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// A virtual context of the second part of a GPU, whose real one is current in this thread.
struct Scene {
    Scene() {
        split_gpus();
        context = virtual_contexts().create(1, tests::context(77), 0);
        REQUIRE(context);
        REQUIRE(CurrentVirtual::set({context, tests::context(77)}) == CUDA_SUCCESS);
    }
    ~Scene() {
        for (const CUstream one : made)
            handle_registry().remove(one, HandleKind::stream);
        CurrentVirtual::set({});
        virtual_contexts().end(*context);
    }
    CUresult make(CUstream* into) {
        return make_registered(
            HandleKind::stream, into,
            [&](CUstream* place) {
                if (answer == CUDA_SUCCESS && !place)
                    return CUDA_ERROR_INVALID_VALUE;
                if (place)
                    *place = stream(100 + ++count);
                return answer;
            },
            [&](CUstream one) { destroyed.push_back(one); });
    }

    MadeUpDriver driver;
    VirtualContext* context = nullptr;
    CUresult answer = CUDA_SUCCESS;
    uintptr_t count = 0;
    std::vector<CUstream> made, destroyed;
};

const CUstream kUntouched = stream(0xdead);

}  // namespace

TEST_CASE("what there is no memory to note is destroyed again, and the caller's place is as it was") {
    Scene scene;
    CUstream into = kUntouched;
    CUresult result = CUDA_SUCCESS;
    // Until the registry would have to grow.
    while (result == CUDA_SUCCESS && scene.made.size() < 10'000) {
        into = kUntouched;
        const NoMemory none;
        result = scene.make(&into);
        if (result == CUDA_SUCCESS)
            scene.made.push_back(into);
    }
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    CHECK(scene.destroyed == std::vector<CUstream>{stream(100 + scene.count)});
    CHECK_FALSE(handle_registry().find(scene.destroyed[0], HandleKind::stream).known);
    CHECK(scene.make(&into) == CUDA_SUCCESS);
    CHECK(into == stream(100 + scene.count));
    scene.made.push_back(into);
    CHECK(scene.destroyed.size() == 1);
}

TEST_CASE("what the driver refuses to make is not noted, and the caller's place is as it was") {
    Scene scene;
    scene.answer = CUDA_ERROR_OUT_OF_MEMORY;  // though it has written something
    CUstream into = kUntouched;
    CHECK(scene.make(&into) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    CHECK_FALSE(handle_registry().find(stream(101), HandleKind::stream).known);
    CHECK(scene.destroyed.empty());
}

TEST_CASE("a caller without a place for it is the driver's to refuse") {
    Scene scene;
    CHECK(scene.make(nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(scene.destroyed.empty());
}

TEST_CASE("what is made is the current virtual context's, or that of a real one which is none of ours") {
    Scene scene;
    CUstream into = nullptr;
    REQUIRE(scene.make(&into) == CUDA_SUCCESS);
    scene.made.push_back(into);
    const HandleOwner owner = handle_registry().find(into, HandleKind::stream);
    CHECK(owner.known);
    CHECK(owner.device == 1);
    CHECK(owner.context == scene.context->number);
    CHECK_FALSE(handle_registry().find(into, HandleKind::module).known);
    REQUIRE(CurrentVirtual::set({nullptr, context(5)}) == CUDA_SUCCESS);
    REQUIRE(scene.make(&into) == CUDA_SUCCESS);
    scene.made.push_back(into);
    CHECK(handle_registry().find(into, HandleKind::stream).known);
    CHECK(handle_registry().find(into, HandleKind::stream).context == 0);
}

TEST_CASE("what the driver doesn't destroy stays its context's, and what it does is nobody's") {
    Scene scene;
    CUstream into = nullptr;
    REQUIRE(scene.make(&into) == CUDA_SUCCESS);
    scene.made.push_back(into);
    const HandleOwner before = handle_registry().find(into, HandleKind::stream);
    bool known_meanwhile = true;
    const auto destroy = [&](CUresult result) {
        return destroy_registered(HandleKind::stream, into, [&] {
            known_meanwhile = handle_registry().find(into, HandleKind::stream).known;
            return result;
        });
    };
    CHECK(destroy(CUDA_ERROR_INVALID_CONTEXT) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK_FALSE(known_meanwhile);
    const HandleOwner after = handle_registry().find(into, HandleKind::stream);
    CHECK(after.known);
    CHECK(after.device == before.device);
    CHECK(after.context == before.context);
    CHECK(destroy(CUDA_SUCCESS) == CUDA_SUCCESS);
    CHECK_FALSE(handle_registry().find(into, HandleKind::stream).known);
    CHECK(destroy(CUDA_ERROR_INVALID_HANDLE) == CUDA_ERROR_INVALID_HANDLE);
    CHECK_FALSE(handle_registry().find(into, HandleKind::stream).known);
}
