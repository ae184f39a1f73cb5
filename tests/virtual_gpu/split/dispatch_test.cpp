// SPDX-License-Identifier: Apache-2.0
// The split functions in the driver's places: what is called through the table reaches the driver translated.
#include "virtual_gpu/split/dispatch.h"

#include <cstring>
#include <string>
#include <utility>

#include "tests/virtual_gpu/split/split_scene.h"
#include "virtual_gpu/split/virtual_context.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

CUdevice asked_gpu = -9;
CUcontext asked_context = nullptr;
unsigned calls = 0;
std::string refused;

struct Scene : SplitScene {
    Scene() {
        calls = 0;
        refused.clear();
        using enum Function;
        driver.put(
            cuDeviceTotalMem_v2, +[](size_t* bytes, CUdevice gpu) -> CUresult {
                asked_gpu = gpu;
                *bytes = 1000;
                return gpu < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
            });
        driver.put(
            cuDeviceGetName, +[](char*, int, CUdevice gpu) -> CUresult {
                asked_gpu = gpu;
                return CUDA_SUCCESS;
            });
        driver.put(
            cuCtxWaitEvent, +[](CUcontext one, CUevent) -> CUresult {
                calls++;
                asked_context = one;
                return CUDA_SUCCESS;
            });
        driver.put(
            cuCheckpointProcessRestore, +[](int, CUcheckpointRestoreArgs*) -> CUresult {
                calls++;
                return CUDA_SUCCESS;
            });
        driver.put(
            cuDeviceGetCount, +[](int* count) -> CUresult {
                *count = 2;
                return CUDA_SUCCESS;
            });
        split().on_refusal = [](const char* symbol) { refused = symbol; };
        install_split();
    }
    ~Scene() {
        for (size_t i = 0; i < kFunctionCount; i++)
            if (void*& own = split_from_slots[i]; own)
                cuslice_driver_slots[i] = std::exchange(own, nullptr);
        split() = before;
    }
    const Split before = split();
};

}  // namespace

TEST_CASE("through the table a program counts virtual GPUs, and the driver is asked of physical ones") {
    Scene scene;
    CHECK(split().installed());
    int count = 0;
    CHECK(CUSLICE_REAL(cuDeviceGetCount)(&count) == CUDA_SUCCESS);
    CHECK(count == 3);
    CHECK(CUSLICE_PHYSICAL(cuDeviceGetCount)(&count) == CUDA_SUCCESS);
    CHECK(count == 2);
    size_t bytes = 0;
    const CUdevice physical[] = {0, 0, 1};
    for (CUdevice device = 0; device < 3; device++) {
        CHECK(CUSLICE_REAL(cuDeviceTotalMem_v2)(&bytes, device) == CUDA_SUCCESS);
        CHECK(bytes == 1000);
        CHECK(asked_gpu == physical[device]);
        asked_gpu = -9;
        CHECK(CUSLICE_REAL(cuDeviceGetName)(nullptr, 0, device) == CUDA_SUCCESS);
        CHECK(asked_gpu == physical[device]);
    }
    CHECK(CUSLICE_REAL(cuDeviceTotalMem_v2)(&bytes, 3) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(asked_gpu == CU_DEVICE_INVALID);
}

TEST_CASE("through the table a context is its real one for the driver, which isn't asked of one that has ended") {
    Scene scene;
    const CUcontext mine = scene.create(1), ended = scene.create(2);
    REQUIRE(split_driver::cuCtxDestroy_v2(ended) == CUDA_SUCCESS);
    CHECK(CUSLICE_REAL(cuCtxWaitEvent)(mine, nullptr) == CUDA_SUCCESS);
    CHECK(asked_context == real_of(0));
    CHECK(CUSLICE_REAL(cuCtxWaitEvent)(context(77), nullptr) == CUDA_SUCCESS);
    CHECK(asked_context == context(77));
    CHECK(CUSLICE_REAL(cuCtxWaitEvent)(nullptr, nullptr) == CUDA_SUCCESS);
    CHECK(asked_context == nullptr);
    CHECK(calls == 3);
    CHECK(CUSLICE_REAL(cuCtxWaitEvent)(ended, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(calls == 3);
}

TEST_CASE("what isn't supported where GPUs are split is refused and told, and what the driver lacks is lacking") {
    Scene scene;
    CHECK(CUSLICE_REAL(cuCheckpointProcessRestore)(1, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(refused == "cuCheckpointProcessRestore");
    CHECK(calls == 0);
    split().on_refusal = Split::tell_nobody;
    CHECK(CUSLICE_REAL(cuCheckpointProcessRestore)(1, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(driver_slot(Function::cuDeviceTotalMem) == nullptr);
    CHECK(driver_slot(Function::cuVDPAUCtxCreate_v2) == nullptr);
    CHECK(driver_slot(Function::cuCtxCreate_v4) == nullptr);
}

TEST_CASE("the split's GPUs are the parts in the program's order, each with its own or its GPU's identity") {
    split_gpus();
    REQUIRE(split().is_open());
    REQUIRE(split().count() == 3);
    for (int i = 0; i < 3; i++)
        CHECK(virtual_contexts().primary(i).device == i);
    CHECK(split().device(0)->physical == 0);
    CHECK(split().device(1)->physical == 0);
    CHECK(split().device(1)->part.part == 1);
    CHECK(split().device(2)->physical == 1);
    CHECK(std::string(split().device(2)->identity.uuid) == "GPU-99999999-1111-2222-3333-444444444444");
    CHECK(std::string(split().device(0)->identity.uuid) != split().device(1)->identity.uuid);
    CHECK(std::string(split().device(1)->identity.uuid) != "GPU-5f0e1d2c-1111-2222-3333-4444444444ab");
}
