// SPDX-License-Identifier: Apache-2.0
// Device properties. 12 fills two layouts: its own (_v2), and under the unversioned name that of 11.

#include "fake/runtime/device_properties.h"
#include "fake/runtime/versioned/form.h"

#include <cstring>

using namespace cuslice::fake;

namespace {

#if CUSLICE_CUDART_VERSION >= 13000
using Properties = cudaDeviceProp;
#else
using Properties = DeviceProperties12;
#endif

// Bytes of it that programs have.
constexpr size_t kBytesKnown = CUSLICE_CUDART_VERSION >= 12000 ? sizeof(Properties) : kDeviceProperties11Bytes;

CUresult fill(Properties* properties, CUdevice device) {
    CUuuid uuid{};
    CUSLICE_TRY(CU(cuDeviceGetName, 2000)(properties->name, int{sizeof properties->name}, device));
    CUSLICE_TRY(CU(cuDeviceGetUuid, 11040)(&uuid, device));
    CUSLICE_TRY(CU(cuDeviceTotalMem, 3020)(&properties->totalGlobalMem, device));
    static_assert(sizeof properties->uuid == sizeof uuid);
    std::memcpy(&properties->uuid, &uuid, sizeof uuid);
    // luid is Windows' identity of an adapter; on Linux it stays zero.
    CUresult result = CUDA_SUCCESS;
    const auto set = [&](auto& member, CUdevice_attribute attribute) {
        int value = 0;
        if (result == CUDA_SUCCESS)
            result = CU(cuDeviceGetAttribute, 2000)(&value, attribute, device);
        if (result == CUDA_ERROR_INVALID_VALUE) {
            result = CUDA_SUCCESS;  // an older driver doesn't know a newer attribute
        }
        member = static_cast<std::remove_reference_t<decltype(member)>>(value);
    };
#define CUSLICE_PROPERTY(type, member, attribute) set(properties->member, CU_DEVICE_ATTRIBUTE_##attribute);
#define CUSLICE_PROPERTY_2(type, member, x, y) CUSLICE_PROPERTY(type, member[0], x) CUSLICE_PROPERTY(type, member[1], y)
#define CUSLICE_PROPERTY_3(type, member, x, y, z) \
    CUSLICE_PROPERTY_2(type, member, x, y) CUSLICE_PROPERTY(type, member[2], z)
#if CUSLICE_CUDART_VERSION >= 13000
#define CUSLICE_PROPERTY_12(type, member, attribute)
#define CUSLICE_PROPERTY_13 CUSLICE_PROPERTY
#else
#define CUSLICE_PROPERTY_12 CUSLICE_PROPERTY
#define CUSLICE_PROPERTY_13(type, member, attribute)
#endif
#include "fake/runtime/properties.def"
    return result;
}

cudaError_t tell(void* destination, size_t bytes, int ordinal) {
    if (destination == nullptr)
        return record(cudaErrorInvalidValue);
    return on_device(ordinal, [&](CUdevice device) {
        Properties properties{};
        CUSLICE_TRY(fill(&properties, device));
        std::memcpy(destination, &properties, bytes);
        return CUDA_SUCCESS;
    });
}

/// How many of the wanted properties a device has. What is zero in `wanted` doesn't matter.
int matches(const Properties& wanted, const Properties& has) {
    int count = 0;
    count += wanted.name[0] != '\0' && std::strncmp(wanted.name, has.name, sizeof has.name) == 0;
    count +=
        wanted.major != 0 && (has.major > wanted.major || (has.major == wanted.major && has.minor >= wanted.minor));
    count += wanted.totalGlobalMem != 0 && has.totalGlobalMem >= wanted.totalGlobalMem;
    count += wanted.multiProcessorCount != 0 && has.multiProcessorCount >= wanted.multiProcessorCount;
    count += wanted.sharedMemPerBlock != 0 && has.sharedMemPerBlock >= wanted.sharedMemPerBlock;
    count += wanted.maxThreadsPerBlock != 0 && has.maxThreadsPerBlock >= wanted.maxThreadsPerBlock;
    return count;
}

}  // namespace

#if CUSLICE_CUDART_VERSION >= 13000

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return tell(properties, sizeof(Properties), device);
}

#else

extern "C" {
cudaError_t properties_of_11(void*, int) CUSLICE_EXPORT_AS(cudaGetDeviceProperties);
cudaError_t properties_of_12(void*, int) CUSLICE_EXPORT_AS(cudaGetDeviceProperties_v2);
}

cudaError_t properties_of_11(void* properties, int device) {
    return tell(properties, kDeviceProperties11Bytes, device);
}

cudaError_t properties_of_12(void* properties, int device) { return tell(properties, sizeof(Properties), device); }

#endif

/// "Returns the device which has properties that best match prop": here the one that has most of those which are set,
/// the first where several have.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
    if (device == nullptr || wanted == nullptr)
        return record(cudaErrorInvalidValue);
    return started([&] {
        Properties asked{};
        std::memcpy(static_cast<void*>(&asked), wanted, kBytesKnown);
        int best = -1;
        for (int ordinal = 0; ordinal < device_count(); ++ordinal) {
            Properties has{};
            CUdevice handle = 0;
            CUSLICE_TRY(device_handle(ordinal, &handle));
            CUSLICE_TRY(as_error(fill(&has, handle)));
            if (const int count = matches(asked, has); count > best) {
                best = count;
                *device = ordinal;
            }
        }
        return cudaSuccess;
    });
}
