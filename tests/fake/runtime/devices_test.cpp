// SPDX-License-Identifier: Apache-2.0
// Devices: count, identity, attributes, choice.

#include <cstring>

#include "fake/runtime/device_properties.h"
#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;
using cuslice::fake::DeviceProperties12;

namespace {

/// Device properties that both layouts of the structure have.
struct Common {
    std::string name;
    std::string uuid;
    size_t total;
    int major;
    int multiprocessors;
    int bus;
    int max_block_z;
    size_t reserved_shared;
};

template <class Properties>
Common common_of(const Properties& p) {
    return {p.name,
            std::string(p.uuid.bytes, sizeof p.uuid.bytes),
            p.totalGlobalMem,
            p.major,
            p.multiProcessorCount,
            p.pciBusID,
            p.maxThreadsDim[2],
            p.reservedSharedMemPerBlock};
}

Common properties(int device) {
    if (runtime_major() < 13) {
        DeviceProperties12 found{};
        const char* name = runtime_major() == 12 ? "cudaGetDeviceProperties_v2" : "cudaGetDeviceProperties";
        const auto get = reinterpret_cast<cudaError_t (*)(void*, int)>(runtime_function(name));
        REQUIRE(get(&found, device) == cudaSuccess);
        return common_of(found);
    }
    cudaDeviceProp found{};
    REQUIRE(RT(cudaGetDeviceProperties)(&found, device) == cudaSuccess);
    return common_of(found);
}

int attribute(cudaDeviceAttr wanted, int device) {
    int value = -1;
    REQUIRE(RT(cudaDeviceGetAttribute)(&value, wanted, device) == cudaSuccess);
    return value;
}

}  // namespace

SCENARIO_IN_CHILD("three devices have three identities") {
    int count = 0;
    REQUIRE(RT(cudaGetDeviceCount)(&count) == cudaSuccess);
    REQUIRE(count == 3);
    const Common first = properties(0);
    const Common second = properties(1);
    const Common third = properties(2);
    CHECK(first.name == second.name);
    CHECK(first.name != third.name);
    CHECK(first.uuid != second.uuid);
    CHECK(first.uuid != std::string(16, '\0'));
    CHECK(first.total == second.total);
    CHECK(first.total > third.total);
    for (int device = 0; device < count; ++device) {
        const Common found = properties(device);
        CHECK(found.major == attribute(cudaDevAttrComputeCapabilityMajor, device));
        CHECK(found.multiprocessors == attribute(cudaDevAttrMultiProcessorCount, device));
        CHECK(found.bus == attribute(cudaDevAttrPciBusId, device));
        CHECK(found.max_block_z == attribute(cudaDevAttrMaxBlockDimZ, device));
        CHECK(found.max_block_z > 0);
        CHECK(found.reserved_shared == static_cast<size_t>(attribute(cudaDevAttrReservedSharedMemoryPerBlock, device)));
        char text[32] = {};
        int again = -1;
        CHECK(RT(cudaDeviceGetPCIBusId)(text, sizeof text, device) == cudaSuccess);
        CHECK(RT(cudaDeviceGetByPCIBusId)(&again, text) == cudaSuccess);
        CHECK(again == device);
    }
    CHECK(RT(cudaDeviceGetAttribute)(&count, cudaDevAttrWarpSize, 3) == cudaErrorInvalidDevice);
    CHECK(RT(cudaDeviceGetAttribute)(&count, cudaDevAttrWarpSize, -1) == cudaErrorInvalidDevice);
}

SCENARIO_IN_CHILD("the current device is 0 until another is set") {
    int device = -1;
    REQUIRE(RT(cudaGetDevice)(&device) == cudaSuccess);
    CHECK(device == 0);
    REQUIRE(RT(cudaSetDevice)(2) == cudaSuccess);
    REQUIRE(RT(cudaGetDevice)(&device) == cudaSuccess);
    CHECK(device == 2);
    CHECK(RT(cudaSetDevice)(3) == cudaErrorInvalidDevice);
    REQUIRE(RT(cudaGetDevice)(&device) == cudaSuccess);
    CHECK(device == 2);
    // Memory comes from the device that is set.
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, 1 << 20) == cudaSuccess);
    cudaPointerAttributes attributes{};
    REQUIRE(RT(cudaPointerGetAttributes)(&attributes, pointer) == cudaSuccess);
    CHECK(attributes.device == 2);
}

SCENARIO_IN_CHILD("the device that has what is asked for is chosen") {
    int device = -1;
    DeviceProperties12 wanted12{};
    cudaDeviceProp wanted13{};
    std::strcpy(wanted12.name, properties(2).name.c_str());
    std::strcpy(wanted13.name, properties(2).name.c_str());
    const void* const wanted = runtime_major() < 13 ? static_cast<const void*>(&wanted12) : &wanted13;
    CHECK(RT(cudaChooseDevice)(&device, static_cast<const cudaDeviceProp*>(wanted)) == cudaSuccess);
    CHECK(device == 2);
}

SCENARIO_IN_CHILD("limits and flags are kept") {
    size_t bytes = 0;
    REQUIRE(RT(cudaDeviceSetLimit)(cudaLimitMallocHeapSize, 32 << 20) == cudaSuccess);
    REQUIRE(RT(cudaDeviceGetLimit)(&bytes, cudaLimitMallocHeapSize) == cudaSuccess);
    CHECK(bytes >= (32u << 20));
    int least = -1;
    int greatest = 1;
    CHECK(RT(cudaDeviceGetStreamPriorityRange)(&least, &greatest) == cudaSuccess);
    CHECK(greatest <= least);
    unsigned flags = 99;
    CHECK(RT(cudaGetDeviceFlags)(&flags) == cudaSuccess);
    CHECK(RT(cudaDeviceSynchronize)() == cudaSuccess);
}
