// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPUs: how many, which is current, what they are.
#include <algorithm>
#include <cstring>

#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

// The GPU that this thread chose last; -1: none yet.
extern constinit thread_local int chosen;

// The thread's GPU: that of its context, else the one that it chose, else what the runtime would begin with.
inline int current(const SplitView& split, int runtime_says) {
    const int now = split.current();
    return now >= 0 ? now : chosen >= 0 ? chosen : split.shown(runtime_says);
}

template <int kVersion>
cudaError_t cudaGetDeviceCount(int* count) {
    const cudaError_t result = CUSLICE_NEXT(cudaGetDeviceCount)(count);
    const SplitView* split = view();
    if (result == cudaSuccess && split)
        *count = split->count();
    return result;
}

template <int kVersion>
cudaError_t cudaGetDevice(int* device) {
    const cudaError_t result = CUSLICE_NEXT(cudaGetDevice)(device);
    const SplitView* split = view();
    if (result == cudaSuccess && split)
        *device = current(*split, *device);
    return result;
}

// The part's context is made current before the runtime makes the physical GPU's so, which is the same one: then it
// is this part that pays for what the runtime needs.
template <int kVersion>
cudaError_t cudaSetDevice(int device) {
    const SplitView* split = view();
    const int real = physical(device);
    if (split && real >= 0) {
        if (split->current() != device)
            if (const int failed = split->make_current(device))
                return static_cast<cudaError_t>(failed);
        chosen = device;
    }
    return CUSLICE_NEXT(cudaSetDevice)(real);
}

template <int kVersion>
cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    return CUSLICE_NEXT(cudaInitDevice)(physical(device), device_flags, flags);
}

// The runtime chooses among physical GPUs, each of which it takes once.
template <int kVersion>
cudaError_t cudaSetValidDevices(int* devices, int count) {
    int list[64], known = 0;
    if (!view() || !devices || count < 0 || count > 64)
        return CUSLICE_NEXT(cudaSetValidDevices)(devices, count);
    for (int i = 0; i < count; i++) {
        const int next = physical(devices[i]);
        if (std::find(list, list + known, next) == list + known)
            list[known++] = next;
    }
    return CUSLICE_NEXT(cudaSetValidDevices)(list, known);
}

template <int kVersion>
cudaError_t cudaChooseDevice(int* device, const void* properties) {
    const cudaError_t result = CUSLICE_NEXT(cudaChooseDevice)(device, properties);
    const SplitView* split = view();
    if (result == cudaSuccess && split)
        *device = split->shown(*device);
    return result;
}

// The runtime's would take every part's memory. One whose GPU has others in use is reset by itself.
template <int kVersion>
bool reset_alone(cudaError_t* result) {
    const SplitView* split = view();
    const int device = split ? split->current() : -1;
    if (device < 0 || !split->has_company(device))
        return false;
    *result = static_cast<cudaError_t>(split->reset(device));
    return true;
}

template <int kVersion>
cudaError_t cudaDeviceReset() {
    cudaError_t result = cudaSuccess;
    return reset_alone<kVersion>(&result) ? result : CUSLICE_NEXT(cudaDeviceReset)();
}

template <int kVersion>
cudaError_t cudaThreadExit() {
    cudaError_t result = cudaSuccess;
    return reset_alone<kVersion>(&result) ? result : CUSLICE_NEXT(cudaThreadExit)();
}

// Where cudaDeviceProp has what is a part's own. The versions' structures are alike up to the multiprocessors.
struct PropertyPlaces {
    size_t uuid, memory, bus, device, domain;
};
inline PropertyPlaces places_of_properties(int version) {
    // 12: NVIDIA's documentation of the runtime API 12.9, the same as 11's as far as this.
    if (version < 13)
        return {256, 288, 584, 588, 592};
    return {offsetof(cudaDeviceProp, uuid), offsetof(cudaDeviceProp, totalGlobalMem),
            offsetof(cudaDeviceProp, pciBusID), offsetof(cudaDeviceProp, pciDeviceID),
            offsetof(cudaDeviceProp, pciDomainID)};
}

inline CUresult uuid_of(CUuuid* uuid, int device) {
    return driver_is_before(11040) ? cuDeviceGetUuid(uuid, device) : cuDeviceGetUuid_v2(uuid, device);
}

template <int kVersion>
cudaError_t corrected_properties(cudaError_t result, void* properties, int device) {
    if (result != cudaSuccess || !view())
        return result;
    auto* bytes = static_cast<unsigned char*>(properties);
    const PropertyPlaces places = places_of_properties(loaded_version(kVersion));
    CUuuid uuid{};
    if (uuid_of(&uuid, device) == CUDA_SUCCESS)
        std::memcpy(bytes + places.uuid, &uuid, sizeof(uuid));
    size_t memory = 0;
    if (cuDeviceTotalMem_v2(&memory, device) == CUDA_SUCCESS)
        std::memcpy(bytes + places.memory, &memory, sizeof(memory));
    const auto put = [&](size_t place, CUdevice_attribute attribute) {
        int value = 0;
        if (cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS)
            std::memcpy(bytes + place, &value, sizeof(value));
    };
    put(places.bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    put(places.device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    put(places.domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    return result;
}

template <int kVersion>
cudaError_t cudaGetDeviceProperties(void* properties, int device) {
    return corrected_properties<kVersion>(CUSLICE_NEXT(cudaGetDeviceProperties)(properties, physical(device)),
                                          properties, device);
}

template <int kVersion>
cudaError_t cudaGetDeviceProperties_v2(void* properties, int device) {
    return corrected_properties<kVersion>(CUSLICE_NEXT(cudaGetDeviceProperties_v2)(properties, physical(device)),
                                          properties, device);
}

template <int kVersion>
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    const cudaError_t result = CUSLICE_NEXT(cudaDeviceGetAttribute)(value, attribute, physical(device));
    if (result != cudaSuccess || !view())
        return result;
    // The numbers are the driver's.
    const bool own =
        attribute == cudaDevAttrPciBusId || attribute == cudaDevAttrPciDeviceId || attribute == cudaDevAttrPciDomainId;
    return own ? as_runtime(cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device)) : result;
}

template <int kVersion>
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
    const cudaError_t result = CUSLICE_NEXT(cudaDeviceGetPCIBusId)(text, size, physical(device));
    return result == cudaSuccess && view() ? as_runtime(cuDeviceGetPCIBusId(text, size, device)) : result;
}

template <int kVersion>
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
    if (!view() || !device || !text)
        return CUSLICE_NEXT(cudaDeviceGetByPCIBusId)(device, text);
    CUdevice ordinal = -1;
    if (cuDeviceGetByPCIBusId(&ordinal, text) != CUDA_SUCCESS)
        return CUSLICE_NEXT(cudaDeviceGetByPCIBusId)(device, "ffff:ff:1f.7");  // none: the runtime says so
    *device = ordinal;
    return cudaSuccess;
}

template <int kVersion>
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format, int device) {
    return CUSLICE_NEXT(cudaDeviceGetTexture1DLinearMaxWidth)(width, format, physical(device));
}

template <int kVersion>
cudaError_t cudaDeviceRegisterAsyncNotification(int device, cudaAsyncCallback function, void* argument,
                                                cudaAsyncCallbackHandle_t* handle) {
    return CUSLICE_NEXT(cudaDeviceRegisterAsyncNotification)(physical(device), function, argument, handle);
}

template <int kVersion>
cudaError_t cudaDeviceUnregisterAsyncNotification(int device, cudaAsyncCallbackHandle_t handle) {
    return CUSLICE_NEXT(cudaDeviceUnregisterAsyncNotification)(physical(device), handle);
}

template <int kVersion>
cudaError_t cudaDeviceGetNvSciSyncAttributes(void* attributes, int device, int flags) {
    return CUSLICE_NEXT(cudaDeviceGetNvSciSyncAttributes)(attributes, physical(device), flags);
}

template <int kVersion>
cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned* capabilities, const cudaAtomicOperation* operations,
                                                unsigned count, int device) {
    return CUSLICE_NEXT(cudaDeviceGetHostAtomicCapabilities)(capabilities, operations, count, physical(device));
}

template <int kVersion>
cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* needs, cudaArray_t array, int device) {
    return CUSLICE_NEXT(cudaArrayGetMemoryRequirements)(needs, array, physical(device));
}

template <int kVersion>
cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* needs, cudaMipmappedArray_t array,
                                                    int device) {
    return CUSLICE_NEXT(cudaMipmappedArrayGetMemoryRequirements)(needs, array, physical(device));
}

template <int kVersion>
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
    return CUSLICE_NEXT(cudaKernelSetAttributeForDevice)(kernel, attribute, value, physical(device));
}

template <int kVersion>
cudaError_t cudaDeviceGraphMemTrim(int device) {
    return CUSLICE_NEXT(cudaDeviceGraphMemTrim)(physical(device));
}

template <int kVersion>
cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
    return CUSLICE_NEXT(cudaDeviceGetGraphMemAttribute)(physical(device), attribute, value);
}

template <int kVersion>
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
    return CUSLICE_NEXT(cudaDeviceSetGraphMemAttribute)(physical(device), attribute, value);
}

}  // namespace cuslice::runtime
