// SPDX-License-Identifier: Apache-2.0
// GPUs as programs on the runtime count them, and as the runtime does.
#include "shim/runtime/devices.h"

#include <algorithm>
#include <vector>

#include "tests/catch.h"
#include "tests/shim/runtime/made_up_runtime.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

// All that name a GPU and leave the answer to the runtime.
std::vector<std::string> asked_of(int gpu) {
    int value = 0;
    unsigned few = 0;
    size_t width = 0;
    cudaChannelFormatDesc format{};
    cudaAsyncCallbackHandle_t handle = nullptr;
    cudaAtomicOperation operation = cudaAtomicOperationIntegerAdd;
    cudaArrayMemoryRequirements needs{};
    return {
        ASK(cudaInitDevice, gpu, 7u, 8u),
        ASK(cudaDeviceGetTexture1DLinearMaxWidth, &width, &format, gpu),
        ASK(cudaDeviceRegisterAsyncNotification, gpu, nullptr, nullptr, &handle),
        ASK(cudaDeviceUnregisterAsyncNotification, gpu, handle),
        ASK(cudaDeviceGetNvSciSyncAttributes, &value, gpu, 7),
        ASK(cudaDeviceGetHostAtomicCapabilities, &few, &operation, 7u, gpu),
        ASK(cudaArrayGetMemoryRequirements, &needs, nullptr, gpu),
        ASK(cudaMipmappedArrayGetMemoryRequirements, &needs, nullptr, gpu),
        ASK(cudaKernelSetAttributeForDevice, nullptr, cudaFuncAttributeMax, 7, gpu),
        ASK(cudaDeviceGraphMemTrim, gpu),
        ASK(cudaDeviceGetGraphMemAttribute, gpu, cudaGraphMemAttrUsedMemHigh, &value),
        ASK(cudaDeviceSetGraphMemAttribute, gpu, cudaGraphMemAttrUsedMemHigh, &value),
        ASK(cudaDeviceGetAttribute, &value, cudaDevAttrWarpSize, gpu),
    };
}

std::vector<std::string> expected_of(const std::string& gpu) {
    return {
        "cudaInitDevice " + gpu + " 7 8",
        "cudaDeviceGetTexture1DLinearMaxWidth * * " + gpu,
        "cudaDeviceRegisterAsyncNotification " + gpu + " 0 0 *",
        "cudaDeviceUnregisterAsyncNotification " + gpu + " 0",
        "cudaDeviceGetNvSciSyncAttributes * " + gpu + " 7",
        "cudaDeviceGetHostAtomicCapabilities * * 7 " + gpu,
        "cudaArrayGetMemoryRequirements * 0 " + gpu,
        "cudaMipmappedArrayGetMemoryRequirements * 0 " + gpu,
        "cudaKernelSetAttributeForDevice 0 " + std::to_string(cudaFuncAttributeMax) + " 7 " + gpu,
        "cudaDeviceGraphMemTrim " + gpu,
        "cudaDeviceGetGraphMemAttribute " + gpu + " " + std::to_string(cudaGraphMemAttrUsedMemHigh) + " *",
        "cudaDeviceSetGraphMemAttribute " + gpu + " " + std::to_string(cudaGraphMemAttrUsedMemHigh) + " *",
        "cudaDeviceGetAttribute * " + std::to_string(cudaDevAttrWarpSize) + " " + gpu,
    };
}

cudaError_t put_device(int* device) {
    made_up().note("device");
    if (made_up().runtime_says == cudaSuccess)
        *device = made_up().runtime_device;
    return made_up().runtime_says;
}
cudaError_t put_choice(int* device, const void*) { return put_device(device); }

// cudaSetValidDevices as the runtime gets it.
cudaError_t write_list(int* devices, int count) {
    std::string list = "list";
    for (int i = 0; devices && i < count; i++)
        list += " " + std::to_string(devices[i]);
    made_up().note(list + " of " + std::to_string(count));
    return cudaSuccess;
}

using Bytes = std::vector<unsigned char>;

template <typename Value>
Value at(const Bytes& bytes, size_t place) {
    Value value;
    std::memcpy(&value, bytes.data() + place, sizeof value);
    return value;
}

cudaError_t put_properties(void* properties, int device) {
    made_up().note(in_words("properties", device));
    std::memset(properties, 0xAA, 2048);
    return made_up().runtime_says;
}

}  // namespace

TEST_CASE("the runtime is asked about the physical GPU of the part that a program names") {
    MadeUpRuntime runtime;
    CHECK(asked_of(0) == expected_of("0"));
    CHECK(asked_of(1) == expected_of("0"));
    CHECK(asked_of(3) == expected_of("1"));
    // So that the runtime refuses it in its own words.
    CHECK(asked_of(4) == expected_of("-2"));
    CHECK(asked_of(-1) == expected_of("-2"));
}

TEST_CASE("where no GPU is split the runtime gets what the program names") {
    MadeUpRuntime runtime;
    runtime.split = false;
    CHECK(asked_of(3) == expected_of("3"));
    CHECK(asked_of(-2) == expected_of("-2"));
}

TEST_CASE("a function that the loaded runtime lacks is refused as not supported") {
    MadeUpRuntime runtime;
    runtime.functions[runtime::Id::cudaDeviceGraphMemTrim] = nullptr;
    CHECK(ASK(cudaDeviceGraphMemTrim, 0).empty());
    CHECK(runtime.result == cudaErrorNotSupported);
}

TEST_CASE("programs are told of all parts") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGetDeviceCount, &put_device);
    int count = -7;
    ASK(cudaGetDeviceCount, &count);
    CHECK(count == 4);
    runtime.split = false;
    ASK(cudaGetDeviceCount, &count);
    CHECK(count == 1);
    runtime.split = true;
    runtime.runtime_says = cudaErrorNoDevice;
    count = -7;
    ASK(cudaGetDeviceCount, &count);
    CHECK(runtime.result == cudaErrorNoDevice);
    CHECK(count == -7);
}

TEST_CASE("a thread's GPU is its context's, else the one that it chose, else what the runtime begins with") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGetDevice, &put_device);
    int device = -7;
    ASK(cudaGetDevice, &device);
    CHECK(device == 2);  // the first part of the physical GPU 1
    runtime::chosen = 0;
    ASK(cudaGetDevice, &device);
    CHECK(device == 0);
    runtime.current = 3;
    ASK(cudaGetDevice, &device);
    CHECK(device == 3);
    runtime.current = 0;
    runtime::chosen = 1;
    ASK(cudaGetDevice, &device);
    CHECK(device == 0);

    runtime.split = false;
    ASK(cudaGetDevice, &device);
    CHECK(device == 1);
    runtime.split = true;
    runtime.runtime_says = cudaErrorInitializationError;
    device = -7;
    ASK(cudaGetDevice, &device);
    CHECK(runtime.result == cudaErrorInitializationError);
    CHECK(device == -7);
}

TEST_CASE("choosing a part makes its context current before the runtime's own") {
    MadeUpRuntime runtime;
    CHECK(ASK(cudaSetDevice, 3) == "current 3; cudaSetDevice 1");
    CHECK(runtime::chosen == 3);
    CHECK(ASK(cudaSetDevice, 3) == "cudaSetDevice 1");
    CHECK(ASK(cudaSetDevice, 0) == "current 0; cudaSetDevice 0");
    CHECK(runtime::chosen == 0);
    // One that isn't there, and one whose context can't be made, change nothing.
    CHECK(ASK(cudaSetDevice, 4) == "cudaSetDevice -2");
    CHECK(runtime::chosen == 0);
    runtime.made_current = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(ASK(cudaSetDevice, 1) == "current 1");
    CHECK(runtime.result == cudaErrorMemoryAllocation);
    CHECK(runtime::chosen == 0);
    runtime.split = false;
    CHECK(ASK(cudaSetDevice, 1) == "cudaSetDevice 1");
    CHECK(runtime::chosen == 0);
}

TEST_CASE("the runtime is given each physical GPU once of the parts that a program lists") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaSetValidDevices, &write_list);
    int list[65] = {3, 1, 0, 2};
    CHECK(ASK(cudaSetValidDevices, list, 4) == "list 1 0 of 2");
    CHECK(ASK(cudaSetValidDevices, list, 1) == "list 1 of 1");
    CHECK(ASK(cudaSetValidDevices, list, 0) == "list of 0");
    CHECK(list[0] == 3);
    int foreign[] = {0, 9};
    CHECK(ASK(cudaSetValidDevices, foreign, 2) == "list 0 -2 of 2");
    std::fill(list, list + 65, 2);
    CHECK(ASK(cudaSetValidDevices, list, 64) == "list 1 of 1");
    // An invalid list (too long, null, of negative length) goes to the runtime as it is, which refuses it.
    CHECK(ASK(cudaSetValidDevices, list, 65).find("2 of 65") != std::string::npos);
    CHECK(ASK(cudaSetValidDevices, nullptr, 2) == "list of 2");
    CHECK(ASK(cudaSetValidDevices, list, -1) == "list of -1");
    runtime.split = false;
    CHECK(ASK(cudaSetValidDevices, list, 2) == "list 2 2 of 2");
}

TEST_CASE("what the runtime chooses by properties is shown as a part") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaChooseDevice, &put_choice);
    int device = -7;
    ASK(cudaChooseDevice, &device, nullptr);
    CHECK(device == 2);
    runtime.split = false;
    ASK(cudaChooseDevice, &device, nullptr);
    CHECK(device == 1);
    runtime.split = true;
    runtime.runtime_says = cudaErrorInvalidValue;
    device = -7;
    ASK(cudaChooseDevice, &device, nullptr);
    CHECK(runtime.result == cudaErrorInvalidValue);
    CHECK(device == -7);
}

TEST_CASE("a reset takes nothing from the other parts of its GPU") {
    MadeUpRuntime runtime;
    record<runtime::Id::cudaDeviceReset>(&runtime::cudaDeviceReset<13>);
    record<runtime::Id::cudaThreadExit>(&runtime::cudaThreadExit<12>);
    const auto reset = [](cudaError_t (*function)()) {
        made_up().result = function();
        return std::exchange(made_up().calls, "");
    };
    const auto device = &runtime::cudaDeviceReset<13>;
    const auto thread = &runtime::cudaThreadExit<12>;
    // Without a context, or with the whole GPU to itself, it is the runtime's.
    runtime.company = true;
    CHECK(reset(device) == "cudaDeviceReset");
    CHECK(reset(thread) == "cudaThreadExit");
    runtime.current = 0;
    CHECK(reset(device) == "reset 0");
    CHECK(runtime.result == cudaSuccess);
    runtime.current = 3;
    CHECK(reset(device) == "reset 3");
    CHECK(reset(thread) == "reset 3");
    runtime.driver_says = CUDA_ERROR_INVALID_DEVICE;
    CHECK(reset(device) == "reset 3");
    CHECK(runtime.result == cudaErrorInvalidDevice);
    CHECK(reset(thread) == "reset 3");
    CHECK(runtime.result == cudaErrorInvalidDevice);
    runtime.company = false;
    CHECK(reset(device) == "cudaDeviceReset");
    CHECK(reset(thread) == "cudaThreadExit");
    runtime.company = true;
    runtime.split = false;
    CHECK(reset(device) == "cudaDeviceReset");
    CHECK(reset(thread) == "cudaThreadExit");
}

TEST_CASE("a part's properties are the GPU's but for its name, its memory and its address") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGetDeviceProperties, &put_properties);
    runtime.put(runtime::Id::cudaGetDeviceProperties_v2, &put_properties);
    // Where CUDA 12.9's documentation has them; 13 has no fields before the multiprocessors' but these.
    struct Places {
        int version;
        size_t uuid, memory, bus, device, domain;
    };
    const Places places = GENERATE(Places{11, 256, 288, 584, 588, 592}, Places{12, 256, 288, 584, 588, 592},
                                   Places{13, offsetof(cudaDeviceProp, uuid), offsetof(cudaDeviceProp, totalGlobalMem),
                                          offsetof(cudaDeviceProp, pciBusID), offsetof(cudaDeviceProp, pciDeviceID),
                                          offsetof(cudaDeviceProp, pciDomainID)});
    runtime.version = places.version;
    Bytes got(2048), expected(2048, 0xAA);
    std::memset(expected.data() + places.uuid, 0x33, 16);
    const size_t memory = size_t{4} << 30;
    std::memcpy(expected.data() + places.memory, &memory, sizeof memory);
    const auto put = [&](size_t place, int value) { std::memcpy(expected.data() + place, &value, sizeof value); };
    put(places.bus, 3000 + CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    put(places.device, 3000 + CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    put(places.domain, 3000 + CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    CHECK(ASK(cudaGetDeviceProperties, got.data(), 3) == "properties 1");
    CHECK(got == expected);
    std::fill(got.begin(), got.end(), 0);
    if (places.version == 12) {
        CHECK(ASK_12(cudaGetDeviceProperties_v2, got.data(), 3) == "properties 1");
        CHECK(got == expected);
    }
    SECTION("a driver before 11.4 tells them too") {
        runtime.old_driver = true;
        CHECK(ASK(cudaGetDeviceProperties, got.data(), 3) == "properties 1");  // no second form
        CHECK(got == expected);
    }

    const Bytes as_the_runtime_says(2048, 0xAA);
    SECTION("what the driver doesn't tell stays the runtime's") {
        runtime.driver_says = CUDA_ERROR_NOT_SUPPORTED;
        ASK(cudaGetDeviceProperties, got.data(), 3);
        CHECK(runtime.result == cudaSuccess);
        CHECK(got == as_the_runtime_says);
    }
    SECTION("a refusal is the runtime's") {
        runtime.runtime_says = cudaErrorInvalidDevice;
        ASK(cudaGetDeviceProperties, got.data(), 3);
        CHECK(runtime.result == cudaErrorInvalidDevice);
        CHECK(got == as_the_runtime_says);
    }
    SECTION("without a split they are the runtime's") {
        runtime.split = false;
        CHECK(ASK(cudaGetDeviceProperties, got.data(), 3) == "properties 3");
        CHECK(got == as_the_runtime_says);
    }
}

TEST_CASE("of a GPU's attributes its address on the bus is the part's own") {
    MadeUpRuntime runtime;
    for (const cudaDeviceAttr own : {cudaDevAttrPciBusId, cudaDevAttrPciDeviceId, cudaDevAttrPciDomainId}) {
        int value = -7;
        CHECK(ASK(cudaDeviceGetAttribute, &value, own, 3) == in_words("cudaDeviceGetAttribute *", own) + " 1");
        CHECK(value == 3000 + own);
        runtime.driver_says = CUDA_ERROR_INVALID_VALUE;
        ASK(cudaDeviceGetAttribute, &value, own, 3);
        CHECK(runtime.result == cudaErrorInvalidValue);
        runtime.driver_says = CUDA_SUCCESS;
        // Not where the runtime refuses, or nothing is split.
        value = -7;
        runtime.runtime_says = cudaErrorInvalidDevice;
        ASK(cudaDeviceGetAttribute, &value, own, 3);
        CHECK(runtime.result == cudaErrorInvalidDevice);
        runtime.runtime_says = cudaSuccess;
        runtime.split = false;
        ASK(cudaDeviceGetAttribute, &value, own, 3);
        CHECK(value == -7);
        runtime.split = true;
    }
    int value = -7;
    ASK(cudaDeviceGetAttribute, &value, cudaDevAttrWarpSize, 3);
    CHECK(value == -7);
}

TEST_CASE("a part has a bus id of its own, by which it is found") {
    MadeUpRuntime runtime;
    char id[32] = "none";
    CHECK(ASK(cudaDeviceGetPCIBusId, id, 32, 3) == "cudaDeviceGetPCIBusId none 32 1; cuDeviceGetPCIBusId 32 3");
    CHECK(std::string(id) == "00000003:00:00.0");
    runtime.runtime_says = cudaErrorInvalidDevice;
    CHECK(ASK(cudaDeviceGetPCIBusId, id, 32, 4).find("cuDeviceGetPCIBusId") == std::string::npos);
    CHECK(runtime.result == cudaErrorInvalidDevice);
    runtime.runtime_says = cudaSuccess;

    int device = -7;
    CHECK(ASK(cudaDeviceGetByPCIBusId, &device, "3:0:0") == "cuDeviceGetByPCIBusId 3:0:0");
    CHECK(runtime.result == cudaSuccess);
    CHECK(device == 3);
    // One that no part has is none of the runtime's either: a physical GPU's own id names nothing here.
    device = -7;
    runtime.driver_says = CUDA_ERROR_INVALID_DEVICE;
    CHECK(ASK(cudaDeviceGetByPCIBusId, &device, "0:0:0") ==
          "cuDeviceGetByPCIBusId 0:0:0; cudaDeviceGetByPCIBusId * ffff:ff:1f.7");
    CHECK(device == -7);
    runtime.driver_says = CUDA_SUCCESS;
    CHECK(ASK(cudaDeviceGetByPCIBusId, nullptr, "3:0:0") == "cudaDeviceGetByPCIBusId 0 3:0:0");
    CHECK(ASK(cudaDeviceGetByPCIBusId, &device, nullptr) == "cudaDeviceGetByPCIBusId * 0");

    runtime.split = false;
    CHECK(ASK(cudaDeviceGetPCIBusId, id, 32, 3) == "cudaDeviceGetPCIBusId 00000003:00:00.0 32 3");
    CHECK(ASK(cudaDeviceGetByPCIBusId, &device, "3:0:0") == "cudaDeviceGetByPCIBusId * 3:0:0");
}
