// SPDX-License-Identifier: Apache-2.0
// The GPUs of a split program, and the identities that tell them apart.
#include <cctype>
#include <cstdio>
#include <string>

#include "config/split/identity.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

CUdevice asked = -9;
CUresult answer = CUDA_SUCCESS;

CUresult on(CUdevice gpu) {
    asked = gpu;
    return gpu < 0 || gpu > 1 ? CUDA_ERROR_INVALID_DEVICE : answer;
}

CUresult uuid_of(CUuuid* uuid, CUdevice gpu) {
    if (on(gpu) == CUDA_SUCCESS)
        std::memset(uuid->bytes, 0x70 + gpu, sizeof uuid->bytes);
    return on(gpu);
}

struct Scene : SplitScene {
    Scene() {
        answer = CUDA_SUCCESS;
        driver.put(
            Function::cuDeviceGetCount, +[](int* count) -> CUresult {
                *count = 2;
                return answer;
            });
        driver.put(
            Function::cuDeviceGet, +[](CUdevice* gpu, int ordinal) -> CUresult {
                if (on(ordinal) == CUDA_SUCCESS)
                    *gpu = ordinal;
                return on(ordinal);
            });
        driver.put(Function::cuDeviceGetUuid, uuid_of);
        driver.put(Function::cuDeviceGetUuid_v2, uuid_of);
        driver.put(
            Function::cuDeviceGetPCIBusId, +[](char* text, int size, CUdevice gpu) -> CUresult {
                if (on(gpu) == CUDA_SUCCESS)
                    std::snprintf(text, static_cast<size_t>(size), "physical %d", gpu);
                return on(gpu);
            });
        driver.put(
            Function::cuDeviceGetByPCIBusId, +[](CUdevice* gpu, const char* text) -> CUresult {
                return gpu && text ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_VALUE;
            });
        driver.put(
            Function::cuDeviceGetAttribute, +[](int* value, CUdevice_attribute, CUdevice gpu) -> CUresult {
                if (on(gpu) == CUDA_SUCCESS)
                    *value = 40 + gpu;
                return on(gpu);
            });
    }
    static std::string uuid(CUdevice device) {
        CUuuid one{}, two{};
        const CUresult result = split_driver::cuDeviceGetUuid_v2(&one, device);
        CHECK(split_driver::cuDeviceGetUuid(&two, device) == result);
        CHECK(std::memcmp(&one, &two, sizeof one) == 0);
        if (result != CUDA_SUCCESS)
            return std::to_string(result);
        char text[sizeof(GpuIdentity::uuid)];
        write_uuid(one.bytes, {}, text);
        return text;
    }
    static std::string pci(CUdevice device) {
        char text[32] = "untouched";
        const CUresult result = split_driver::cuDeviceGetPCIBusId(text, sizeof text, device);
        if (result != CUDA_SUCCESS)
            CHECK(std::string(text) == "untouched");
        return result == CUDA_SUCCESS ? text : std::to_string(result);
    }
    static int attribute(CUdevice_attribute which, CUdevice device) {
        int value = -1;
        const CUresult result = split_driver::cuDeviceGetAttribute(&value, which, device);
        return result == CUDA_SUCCESS ? value : -static_cast<int>(result);
    }
    static int by_pci(const std::string& pci) {
        CUdevice device = 77;
        const CUresult result = split_driver::cuDeviceGetByPCIBusId(&device, pci.c_str());
        if (result != CUDA_SUCCESS)
            CHECK(device == 77);
        return result == CUDA_SUCCESS ? device : -static_cast<int>(result);
    }
};

}  // namespace

TEST_CASE("the program's GPUs are counted from 0, and each is asked of the physical one that it is on") {
    Scene scene;
    int count = 0;
    REQUIRE(split_driver::cuDeviceGetCount(&count) == CUDA_SUCCESS);
    CHECK(count == 3);
    const CUdevice physical[] = {0, 0, 1};
    for (int ordinal = 0; ordinal < 3; ordinal++) {
        CUdevice device = -1;
        REQUIRE(split_driver::cuDeviceGet(&device, ordinal) == CUDA_SUCCESS);
        CHECK(device == ordinal);
        CHECK(asked == physical[ordinal]);
    }
    CUdevice device = 77;
    CHECK(split_driver::cuDeviceGet(&device, 3) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(split_driver::cuDeviceGet(&device, -1) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(device == 77);
    answer = CUDA_ERROR_NOT_INITIALIZED;
    count = 77;
    CHECK(split_driver::cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(count == 2);  // what the driver has put there
}

TEST_CASE("a part's UUID is its own, and a whole GPU's the driver's") {
    Scene scene;
    CHECK(scene.uuid(0) == split().device(0)->identity.uuid);
    CHECK(scene.uuid(1) == split().device(1)->identity.uuid);
    CHECK(scene.uuid(0) != scene.uuid(1));
    CHECK(scene.uuid(2) == "GPU-71717171-7171-7171-7171-717171717171");
    CHECK(scene.uuid(3) == std::to_string(CUDA_ERROR_INVALID_DEVICE));
    answer = CUDA_ERROR_UNKNOWN;
    CHECK(scene.uuid(1) == std::to_string(CUDA_ERROR_UNKNOWN));
}

TEST_CASE("a part's PCI id is its own, in whole and in its numbers, and finds it again") {
    Scene scene;
    for (const int part : {0, 1}) {
        const std::string own = split().device(part)->identity.pci;
        std::string upper = own;  // as the driver and NVML write it
        for (char& digit : upper)
            digit = static_cast<char>(std::toupper(digit));
        CHECK(scene.pci(part) == upper);
        CHECK(scene.by_pci(own) == part);
        CHECK(scene.attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, part) == std::stoi(own, nullptr, 16));
        CHECK(scene.attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, part) == 0x81);
        CHECK(scene.attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, part) == 0);
        CHECK(scene.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, part) == 40);
    }
    CHECK(scene.pci(2) == "physical 1");
    CHECK(scene.attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 2) == 41);
    CHECK(scene.by_pci("0000:C1:02.0") == 2);
    CHECK(scene.by_pci("0000:81:00.0") == -CUDA_ERROR_INVALID_DEVICE);
    CHECK(scene.by_pci("nonsense") == -CUDA_ERROR_INVALID_VALUE);
    CUdevice device = 77;
    CHECK(split_driver::cuDeviceGetByPCIBusId(nullptr, "0000:81:00.0") == CUDA_ERROR_INVALID_VALUE);
    CHECK(split_driver::cuDeviceGetByPCIBusId(&device, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(scene.pci(3) == std::to_string(CUDA_ERROR_INVALID_DEVICE));
    CHECK(scene.attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 3) == -CUDA_ERROR_INVALID_DEVICE);
    answer = CUDA_ERROR_UNKNOWN;
    CHECK(scene.pci(1) == std::to_string(CUDA_ERROR_UNKNOWN));
    CHECK(scene.attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1) == -CUDA_ERROR_UNKNOWN);
}

TEST_CASE("a PCI id that there is little room for is cut, and nothing is written behind it") {
    Scene scene;
    char text[8];
    std::memset(text, 'x', sizeof text);
    CHECK(split_driver::cuDeviceGetPCIBusId(text, 5, 1) == CUDA_SUCCESS);
    CHECK(std::string(text) == "C001");
    CHECK(text[5] == 'x');
}
