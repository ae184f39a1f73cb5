// SPDX-License-Identifier: Apache-2.0
// Events: whose they are, and that nobody is told a time between those of two virtual GPUs.
#include <cstdint>

#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

CUevent const kUntouched = reinterpret_cast<CUevent>(0xdead);
uintptr_t made = 0;
int destroyed = 0, timed = 0;
CUresult answer = CUDA_SUCCESS;

CUevent event(uintptr_t number) { return reinterpret_cast<CUevent>(0x10000 + 0x1000 * number); }
HandleOwner owner_of(CUevent one) { return handle_registry().find(one, HandleKind::event); }

CUresult destroy(CUevent) {
    destroyed += answer == CUDA_SUCCESS;
    return answer;
}
CUresult time_between(float* milliseconds, CUevent, CUevent) {
    timed++;
    *milliseconds = 1;
    return answer;
}

struct Scene : SplitScene {
    Scene() {
        made = 0, destroyed = timed = 0;
        answer = CUDA_SUCCESS;
        using enum Function;
        driver.put(
            cuEventCreate, +[](CUevent* into, unsigned) -> CUresult {
                *into = event(++made);
                return answer;
            });
        driver.put(cuEventDestroy, destroy);
        driver.put(cuEventDestroy_v2, destroy);
        driver.put(cuEventElapsedTime, time_between);
        driver.put(cuEventElapsedTime_v2, time_between);
    }
    ~Scene() {
        for (uintptr_t one = 1; one <= made; one++)
            handle_registry().remove(event(one), HandleKind::event);
    }
    CUevent make(int device) {
        create(device);
        CUevent one = kUntouched;
        CHECK(split_driver::cuEventCreate(&one, 0) == CUDA_SUCCESS);
        return one;
    }
};

}  // namespace

TEST_CASE("there is no time between events of two virtual GPUs, and the driver is asked for all others") {
    Scene scene;
    const CUevent first = scene.make(0), second = scene.make(0), sibling = scene.make(1), elsewhere = scene.make(2);
    const CUevent unknown = reinterpret_cast<CUevent>(0x20);
    for (const auto elapsed : {split_driver::cuEventElapsedTime, split_driver::cuEventElapsedTime_v2}) {
        float milliseconds = -1;
        timed = 0;
        CHECK(elapsed(&milliseconds, first, sibling) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(elapsed(&milliseconds, sibling, first) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(elapsed(&milliseconds, first, elsewhere) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(milliseconds == -1);
        CHECK(timed == 0);
        CHECK(elapsed(&milliseconds, first, second) == CUDA_SUCCESS);
        CHECK(elapsed(&milliseconds, first, unknown) == CUDA_SUCCESS);
        CHECK(timed == 2);
    }
}

TEST_CASE("an event is its virtual GPU's until it is destroyed, by either function") {
    Scene scene;
    for (const auto destroys : {split_driver::cuEventDestroy, split_driver::cuEventDestroy_v2}) {
        const CUevent one = scene.make(1);
        CHECK(owner_of(one).device == 1);
        answer = CUDA_ERROR_INVALID_HANDLE;
        CHECK(destroys(one) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(owner_of(one).known);
        answer = CUDA_SUCCESS;
        CHECK(destroys(one) == CUDA_SUCCESS);
        CHECK_FALSE(owner_of(one).known);
    }
    CHECK(destroyed == 2);
}

TEST_CASE("an event that can't be made is none, and the program's place stays as it was") {
    Scene scene;
    scene.create(0);
    CUevent one = kUntouched;
    answer = CUDA_ERROR_UNKNOWN;
    CHECK(split_driver::cuEventCreate(&one, 0) == CUDA_ERROR_UNKNOWN);
    CHECK(one == kUntouched);
}
