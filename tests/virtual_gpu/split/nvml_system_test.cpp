// SPDX-License-Identifier: Apache-2.0
// NVML's functions of two GPUs, and those that answer with one.
#include "tests/virtual_gpu/split/nvml_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// Devices that the library was asked about, and the one that it answers with.
nvmlDevice_t asked_a = nullptr, asked_b = nullptr, answered = nullptr;
unsigned calls = 0;

nvmlReturn_t note(nvmlDevice_t a, nvmlDevice_t b) {
    calls++;
    asked_a = a, asked_b = b;
    return NvmlScene::failing ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

struct Scene : NvmlScene {
    Scene() {
        calls = 0;
        asked_a = asked_b = answered = nullptr;
        put(
            NvmlFunction::nvmlDeviceGetTopologyCommonAncestor,
            +[](nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t* level) -> nvmlReturn_t {
                *level = NVML_TOPOLOGY_SYSTEM;
                return note(a, b);
            });
        put(
            NvmlFunction::nvmlDeviceGetP2PStatus,
            +[](nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                nvmlGpuP2PStatus_t* status) -> nvmlReturn_t {
                *status =
                    index == NVML_P2P_CAPS_INDEX_NVLINK ? NVML_P2P_STATUS_DISABLED_BY_REGKEY : NVML_P2P_STATUS_UNKNOWN;
                return note(a, b);
            });
        put(
            NvmlFunction::nvmlDeviceOnSameBoard, +[](nvmlDevice_t a, nvmlDevice_t b, int* same) -> nvmlReturn_t {
                *same = 0;
                return note(a, b);
            });
        put(
            NvmlFunction::nvmlDeviceGetMigDeviceHandleByIndex,
            +[](nvmlDevice_t gpu, unsigned, nvmlDevice_t* instance) -> nvmlReturn_t {
                *instance = real_handle(2);
                return note(gpu, nullptr);
            });
        put(
            NvmlFunction::nvmlDeviceGetDeviceHandleFromMigDeviceHandle,
            +[](nvmlDevice_t instance, nvmlDevice_t* gpu) -> nvmlReturn_t {
                *gpu = answered;
                return note(instance, nullptr);
            });
        put(NvmlFunction::nvmlEventSetWait, wait);
        put(NvmlFunction::nvmlEventSetWait_v2, wait);
        install();
        open();
    }
    static nvmlReturn_t wait(nvmlEventSet_t, nvmlEventData_t* data, unsigned milliseconds) {
        data->device = answered;
        data->eventType = milliseconds;
        return note(nullptr, nullptr);
    }
};

}  // namespace

TEST_CASE("parts of one GPU are as near as can be, and NVML isn't asked") {
    const Scene scene;
    for (const unsigned other : {scene.kFirstPart, scene.kSecondPart}) {
        const nvmlDevice_t a = scene.handle(scene.kFirstPart), b = scene.handle(other);
        nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_NODE;
        nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_UNKNOWN;
        int same = 0;
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetTopologyCommonAncestor)(a, b, &level) == NVML_SUCCESS);
        CHECK(level == NVML_TOPOLOGY_INTERNAL);
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetP2PStatus)(a, b, NVML_P2P_CAPS_INDEX_NVLINK, &status) == NVML_SUCCESS);
        CHECK(status == NVML_P2P_STATUS_OK);
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetP2PStatus)(a, b, NVML_P2P_CAPS_INDEX_UNKNOWN, &status) ==
              NVML_ERROR_INVALID_ARGUMENT);
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceOnSameBoard)(a, b, &same) == NVML_SUCCESS);
        CHECK(same == 1);
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceOnSameBoard)(a, b, nullptr) == NVML_ERROR_INVALID_ARGUMENT);
    }
    CHECK(calls == 0);
}

TEST_CASE("how near other GPUs are is asked of NVML, by its own handles") {
    const Scene scene;
    const auto check = [](nvmlDevice_t a, nvmlDevice_t b, nvmlDevice_t real_a, nvmlDevice_t real_b) {
        nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_INTERNAL;
        nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_OK;
        int same = 1;
        const auto asked = [&] {
            const bool right = asked_a == real_a && asked_b == real_b;
            asked_a = asked_b = nullptr;
            return right;
        };
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetTopologyCommonAncestor)(a, b, &level) == NVML_SUCCESS);
        CHECK(level == NVML_TOPOLOGY_SYSTEM);
        CHECK(asked());
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetP2PStatus)(a, b, NVML_P2P_CAPS_INDEX_NVLINK, &status) == NVML_SUCCESS);
        CHECK(status == NVML_P2P_STATUS_DISABLED_BY_REGKEY);
        CHECK(asked());
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceOnSameBoard)(a, b, &same) == NVML_SUCCESS);
        CHECK(same == 0);
        CHECK(asked());
    };
    const nvmlDevice_t part = scene.handle(scene.kSecondPart), whole = scene.handle(scene.kWhole);
    check(part, whole, real_handle(0), real_handle(1));
    check(whole, part, real_handle(1), real_handle(0));
    check(whole, whole, real_handle(1), real_handle(1));
    check(part, real_handle(3), real_handle(0), real_handle(3));
    check(nullptr, part, nullptr, real_handle(0));
    check(real_handle(3), nullptr, real_handle(3), nullptr);
    NvmlScene::failing = true;
    int same = 0;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceOnSameBoard)(part, whole, &same) == NVML_ERROR_UNKNOWN);
}

TEST_CASE("a part has no MIG instances, and a whole GPU has its own") {
    const Scene scene;
    nvmlDevice_t instance = nullptr;
    const auto ask = [&](nvmlDevice_t gpu) {
        asked_a = nullptr;
        return CUSLICE_REAL_NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu, 0, &instance);
    };
    CHECK(ask(scene.handle(scene.kFirstPart)) == NVML_ERROR_NOT_SUPPORTED);
    CHECK(ask(scene.handle(scene.kSecondPart)) == NVML_ERROR_NOT_SUPPORTED);
    CHECK(calls == 0);
    CHECK(instance == nullptr);
    CHECK(ask(scene.handle(scene.kWhole)) == NVML_SUCCESS);
    CHECK(asked_a == real_handle(1));
    CHECK(instance == real_handle(2));
    CHECK(ask(real_handle(3)) == NVML_SUCCESS);
    CHECK(asked_a == real_handle(3));
}

TEST_CASE("the GPU of a MIG instance is shown where it is whole, and not where it is split or not the program's") {
    const Scene scene;
    const nvmlDevice_t untouched = real_handle(3);
    nvmlDevice_t gpu = untouched;
    const auto ask = [&](nvmlDevice_t instance, nvmlDevice_t whole) {
        answered = whole;
        gpu = untouched;
        asked_a = nullptr;
        return CUSLICE_REAL_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(instance, &gpu);
    };
    CHECK(ask(scene.handle(scene.kInstance), real_handle(1)) == NVML_SUCCESS);
    CHECK(asked_a == real_handle(2));
    CHECK(gpu == scene.handle(scene.kWhole));
    CHECK(ask(real_handle(3), real_handle(1)) == NVML_SUCCESS);
    CHECK(asked_a == real_handle(3));
    for (const nvmlDevice_t other : {real_handle(0), real_handle(3), nvmlDevice_t{}}) {
        CHECK(ask(scene.handle(scene.kInstance), other) == NVML_ERROR_NOT_SUPPORTED);
        CHECK(gpu == untouched);
    }
    NvmlScene::failing = true;
    CHECK(ask(scene.handle(scene.kInstance), real_handle(1)) == NVML_ERROR_UNKNOWN);
    CHECK(gpu == untouched);
    calls = 0;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(scene.handle(scene.kInstance), nullptr) ==
          NVML_ERROR_INVALID_ARGUMENT);
    CHECK(calls == 0);
}

TEST_CASE("an event of a GPU's is its first partition's, and one of a GPU that isn't the program's names none") {
    const Scene scene;
    for (const bool second_form : {false, true}) {
        CAPTURE(second_form);
        const auto ask = [&](nvmlDevice_t of, nvmlReturn_t expected) {
            answered = of;
            nvmlEventData_t data{};
            CHECK((second_form ? CUSLICE_REAL_NVML(nvmlEventSetWait_v2)(nullptr, &data, 5)
                               : CUSLICE_REAL_NVML(nvmlEventSetWait)(nullptr, &data, 5)) == expected);
            CHECK(data.eventType == 5);
            return data.device;
        };
        CHECK(ask(real_handle(0), NVML_SUCCESS) == scene.handle(scene.kFirstPart));
        CHECK(ask(real_handle(1), NVML_SUCCESS) == scene.handle(scene.kWhole));
        CHECK(ask(real_handle(3), NVML_SUCCESS) == nullptr);
        CHECK(ask(nullptr, NVML_SUCCESS) == nullptr);
        NvmlScene::failing = true;
        CHECK(ask(real_handle(0), NVML_ERROR_UNKNOWN) == real_handle(0));
        NvmlScene::failing = false;
    }
}
