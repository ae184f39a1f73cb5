// SPDX-License-Identifier: Apache-2.0
// Virtual GPUs that NVML shows, and the functions that stand before NVML's own.
#include "virtual_gpu/split/nvml.h"

#include "tests/virtual_gpu/split/nvml_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

nvmlDevice_t asked_of = nullptr;
unsigned calls = 0;

nvmlReturn_t power(nvmlDevice_t gpu, unsigned* milliwatts) {
    calls++;
    asked_of = gpu;
    *milliwatts = 700;
    return NVML_SUCCESS;
}

nvmlDevice_t behind(nvmlDevice_t handle, ptrdiff_t bytes) {
    return reinterpret_cast<nvmlDevice_t>(reinterpret_cast<uintptr_t>(handle) + static_cast<uintptr_t>(bytes));
}

}  // namespace

TEST_CASE("NVML's virtual GPUs are the parts in the program's order, each with its own or its GPU's identity") {
    const NvmlScene scene;
    CHECK_FALSE(virtual_nvml().is_open());
    CHECK(virtual_nvml().count() == 0);
    CHECK(virtual_nvml().device(0) == nullptr);
    scene.open();
    CHECK(virtual_nvml().is_open());
    REQUIRE(virtual_nvml().count() == scene.kCount);
    const unsigned gpu_of[] = {0, 1, 0, 2};
    for (unsigned i = 0; i < scene.kCount; i++) {
        const VirtualNvmlDevice& device = *virtual_nvml().device(i);
        CHECK(device.index == i);
        CHECK(device.physical == real_handle(static_cast<int>(gpu_of[i])));
        CHECK(device.total == 1000 * (gpu_of[i] + 1));
        CHECK(device.gpu == &NvmlScene::gpus.identities[gpu_of[i]]);
        CHECK(virtual_nvml().find(device.handle()) == &device);
    }
    const GpuIdentity& gpu = NvmlScene::gpus.identities[0];
    CHECK(scene.uuid(scene.kFirstPart) == identity_of_part(gpu, 0).uuid);
    CHECK(scene.uuid(scene.kSecondPart) == identity_of_part(gpu, 1).uuid);
    CHECK(scene.pci(scene.kSecondPart) == identity_of_part(gpu, 1).pci);
    CHECK(scene.uuid(scene.kWhole) == NvmlScene::gpus.identities[1].uuid);
    CHECK(scene.pci(scene.kInstance) == NvmlScene::gpus.identities[2].pci);
    CHECK(virtual_nvml().device(scene.kSecondPart)->part.bytes == 1000);
    CHECK(virtual_nvml().device(scene.kCount) == nullptr);
}

TEST_CASE("a handle of NVML's virtual GPUs is exact, and everything beside it is none") {
    const NvmlScene scene;
    scene.open();
    const nvmlDevice_t first = scene.handle(0);
    constexpr ptrdiff_t kSize = sizeof(VirtualNvmlDevice);
    CHECK(virtual_nvml().find(behind(first, kSize)) == virtual_nvml().device(1));
    for (const ptrdiff_t bytes : {ptrdiff_t{1}, ptrdiff_t{8}, kSize - 1, kSize + 8, -kSize,
                                  // There is room for more of them than there are.
                                  kSize * scene.kCount, kSize * ptrdiff_t{VirtualNvml::kMax}})
        CHECK(virtual_nvml().find(behind(first, bytes)) == nullptr);
    CHECK(virtual_nvml().find(nullptr) == nullptr);
    CHECK(virtual_nvml().find(real_handle(0)) == nullptr);
}

TEST_CASE("a GPU of the real library's is shown as its first partition, in whatever order they are counted") {
    const NvmlScene scene;
    scene.open();
    CHECK(virtual_nvml().first_of(real_handle(0)) == virtual_nvml().device(scene.kFirstPart));
    CHECK(virtual_nvml().first_of(real_handle(1)) == virtual_nvml().device(scene.kWhole));
    CHECK(virtual_nvml().first_of(real_handle(3)) == nullptr);
    CHECK(virtual_nvml().first_of(scene.handle(0)) == nullptr);
}

TEST_CASE("a function that no one of ours stands before is given the real handle, and others' handles as they are") {
    const NvmlScene scene;
    scene.put(NvmlFunction::nvmlDeviceGetPowerUsage, power);
    scene.install();
    scene.open();
    unsigned milliwatts = 0;
    const auto ask = [&](nvmlDevice_t handle) {
        asked_of = nullptr;
        CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetPowerUsage)(handle, &milliwatts) == NVML_SUCCESS);
        return asked_of;
    };
    CHECK(ask(scene.handle(scene.kSecondPart)) == real_handle(0));
    CHECK(ask(scene.handle(scene.kFirstPart)) == real_handle(0));
    CHECK(ask(scene.handle(scene.kWhole)) == real_handle(1));
    CHECK(milliwatts == 700);
    const nvmlDevice_t first = scene.handle(0);
    for (const nvmlDevice_t other : {real_handle(2), nvmlDevice_t{}, behind(first, -256), behind(first, 0x4000)})
        CHECK(ask(other) == other);
}

TEST_CASE("a function that names physical GPUs isn't asked, and one that the library lacks is lacking") {
    const NvmlScene scene;
    calls = 0;
    scene.put(NvmlFunction::nvmlDeviceGetPdi, power);
    scene.put(NvmlFunction::nvmlDeviceGetCount_v2, power);
    scene.install();
    scene.open();
    nvmlPdi_t pdi{};
    nvmlPciInfo_t remote{};
    unsigned count = 0, state = 0;
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetPdi)(scene.handle(0), &pdi) == NVML_ERROR_NOT_SUPPORTED);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetCount_v2)(&count) == NVML_SUCCESS);
    CHECK(count == scene.kCount);
    CHECK(calls == 0);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetCount)(&count) == NVML_ERROR_FUNCTION_NOT_FOUND);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)(scene.handle(0), 0, &remote) ==
          NVML_ERROR_FUNCTION_NOT_FOUND);
    CHECK(CUSLICE_REAL_NVML(nvmlDeviceGetPowerUsage)(scene.handle(0), &state) == NVML_ERROR_FUNCTION_NOT_FOUND);
}
