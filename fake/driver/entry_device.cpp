// SPDX-License-Identifier: Apache-2.0
// Devices: their number, names and attributes.

#include <cstring>

#include "fake/driver/api_prologue.h"
#include "fake/driver/architecture.h"
#include "fake/driver/array.h"
#include "fake/driver/state.h"
#include "virtual_gpu/driver/array_format.h"

using namespace cuslice::fake;

namespace {

CUresult get_uuid(CUuuid* out, CUdevice device) {
    CUSLICE_FIND(Gpu, gpu, device_and(out, device, gpu));
    std::memcpy(out->bytes, gpu->spec.uuid.data(), gpu->spec.uuid.size());
    return CUDA_SUCCESS;
}

CUresult copy_text(char* out, int size, const std::string& text) {
    if (size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    std::strncpy(out, text.c_str(), static_cast<size_t>(size));
    out[size - 1] = '\0';
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuDeviceGetCount, count) {
    if (count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver().gpus.size());
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGet, device, ordinal) {
    CUSLICE_FIND(Gpu, gpu, device_and(device, ordinal, gpu));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetName, name, len, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(name, device, gpu));
    return copy_text(name, len, gpu->spec.name);
}

CUSLICE_ENTRY_PAIR(cuDeviceGetUuid, get_uuid, uuid, device)

CUSLICE_ENTRY(cuDeviceGetLuid, luid, mask, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(luid, device, gpu));
    if (mask == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;  // Windows alone has LUIDs
}

CUSLICE_ENTRY(cuDeviceTotalMem_v2, bytes, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(bytes, device, gpu));
    *bytes = gpu->capacity();
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceTotalMem, bytes, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(bytes, device, gpu));
    // 32 bits: what does not fit is said as the most that does.
    *bytes = gpu->capacity() > 0xffffffffULL ? 0xffffffffU : static_cast<unsigned>(gpu->capacity());
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetAttribute, value, attribute, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(value, device, gpu));
    int found = 0;
    if (!device_attribute(gpu->spec, attribute, found))
        return CUDA_ERROR_INVALID_VALUE;
    *value = found;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceComputeCapability, major, minor, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(major, device, gpu));
    if (minor == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *major = gpu->spec.major;
    *minor = gpu->spec.minor;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetProperties, prop, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(prop, device, gpu));
    const auto value = [&](CUdevice_attribute attribute) {
        int number = 0;
        device_attribute(gpu->spec, attribute, number);
        return number;
    };
    prop->maxThreadsPerBlock = kMaxThreadsPerBlock;
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = static_cast<int>(kMaxBlock[i]);
        prop->maxGridSize[i] = static_cast<int>(kMaxGrid[i]);
    }
    prop->sharedMemPerBlock = kSharedPerBlock;
    prop->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->SIMDWidth = kWarpSize;
    prop->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    prop->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetPCIBusId, id, len, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(id, device, gpu));
    return copy_text(id, len, pci_text(gpu->spec.pci));
}

CUSLICE_ENTRY(cuDeviceGetByPCIBusId, device, id) {
    PciAddress pci;
    if (device == nullptr || id == nullptr || !parse_pci(id, pci))
        return CUDA_ERROR_INVALID_VALUE;
    for (const auto& gpu : driver().gpus) {
        if (!(gpu->spec.pci == pci))
            continue;
        *device = gpu->ordinal;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUSLICE_ENTRY(cuDeviceGetTexture1DLinearMaxWidth, width, format, channels, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(width, device, gpu));
    if (cuslice::channel_bytes(format) == 0 || !is_channel_count(channels))
        return CUDA_ERROR_INVALID_VALUE;
    *width = kLinearTextureWidth;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetExecAffinitySupport, supported, type, device) {
    CUSLICE_FIND(Gpu, gpu, device_and(supported, device, gpu));
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    *supported = 0;
    return CUDA_SUCCESS;
}
